#!/usr/bin/env python3
"""Generates the stand-in libraries' stubs from what the LibTorch in use imports.

usage:
  generate.py scan TORCH_DIR OUT.json
      Reads the dynamic symbol tables in TORCH_DIR/lib: which vendor libraries are needed, which of their functions, under
      which symbol versions; and which cards the LibTorch has code for. Fails, naming them, on libraries that no stand-in
      covers.
  generate.py versions SCAN.json OUT.h
      Writes which versions of the vendor's libraries the LibTorch is released with.
  generate.py stubs SCAN.json LIBRARY ENTRY_POINTS.txt STUBS.c EXPORTS.map OBJECT...
      Writes what the hand-written OBJECTs of one library leave undefined, and the linker's version script.
  generate.py listed MAJOR OUT.json
      The same as `scan` for a major version of CUDA that no LibTorch is at hand for, from LIBRARY/exports.txt alone: the
      libraries whose name differs in that version.
  generate.py released released.json OUT.json
      The same as `scan` for the default release of LibTorch, from what the repository lists of it: released.json has what
      is in no exports.txt.
  generate.py exports LIBRARY/exports.txt MAJOR VENDOR_LIBRARY
      Adds the functions that a vendor's library of that CUDA exports to the list: the stand-ins have all of them, so that any
      PyTorch, and any other program of that CUDA, finds what it links.

exports.txt names the functions that every CUDA has which was looked at; below a line "[12]", those of CUDA 12 alone.

ENTRY_POINTS.txt groups functions under a reason:
  [no-op] why answering success and doing nothing is right
  [work] the same for calls that make the device write memory that their caller allocated
  name_or_pattern
  [handle] the same for calls that want a fresh handle through their first argument
  [ready] the same for calls that first of all need a card
  name_or_pattern
  [refused] why it cannot be answered
  name_or_pattern
  [int N] or [size_t N ...] what the vendor's library would answer through the argument with that number (from 0)
  name_or_pattern
The last kind answers zero and enters the function's name as unmodelled.
A function that is neither written by hand nor listed is refused too, and the build names it: it is new in this LibTorch.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys

# LIBRARY -> SONAME without its number, and the number: one for all, or one for each major version of CUDA; how unversioned
# functions are told; the value that says "not supported".
LIBRARIES = {
    "runtime": {"stem": "libcudart", "number": {12: 12, 13: 13}, "prefix": "", "refusal": 801},
    "driver": {"stem": "libcuda", "number": 1, "prefix": "cu[A-Z]", "refusal": 801},
    "cublas": {"stem": "libcublas", "number": {12: 12, 13: 13}, "prefix": "", "refusal": 15},
    "cublas_lt": {"stem": "libcublasLt", "number": {12: 12, 13: 13}, "prefix": "", "refusal": 15},
    "cudnn": {"stem": "libcudnn", "number": 9, "prefix": "", "refusal": 3000},
    "nvrtc": {"stem": "libnvrtc", "number": {12: 12, 13: 13}, "prefix": "", "refusal": 11},
    "nvml": {"stem": "libnvidia-ml", "number": 1, "prefix": "", "refusal": 3},
    "nccl": {"stem": "libnccl", "number": 2, "prefix": "p?nccl[A-Z]", "refusal": 5},
    "cufft": {"stem": "libcufft", "number": {12: 11, 13: 12}, "prefix": "", "refusal": 16},
    "cusparse": {"stem": "libcusparse", "number": 12, "prefix": "", "refusal": 10},
    "cusparse_lt": {"stem": "libcusparseLt", "number": 0, "prefix": "cusparseLt[A-Z]", "refusal": 10},
    "cusolver": {"stem": "libcusolver", "number": {12: 11, 13: 12}, "prefix": "", "refusal": 9},
    "curand": {"stem": "libcurand", "number": 10, "prefix": "", "refusal": 999},
    "cufile": {"stem": "libcufile", "number": 0, "prefix": "cuFile[A-Z]", "refusal": 5006},
    "nvshmem": {"stem": "libnvshmem_host", "number": 3, "prefix": "nvshmem", "refusal": 1},
    "nvtx": {"stem": "libnvToolsExt", "number": 1, "prefix": "nvtx[A-Z]", "refusal": 0},
    "cupti": {"stem": "libcupti", "number": {12: 12, 13: 13}, "prefix": "", "refusal": 27},
}
# Stubs answer with a number, so a function that gives a text is written by hand.
GIVES_A_TEXT = re.compile(r"Get(Last)?(Error|Status|Result)_?(String|Name)$|ErrorString$")
BY_POINTER = {"cuGetErrorString", "cuGetErrorName", "cuptiGetResultString", "cudnnGetLastErrorString"}  # give it through an argument
EMULATOR = pathlib.Path(__file__).resolve().parent
VENDOR = re.compile(r"lib(cu|nv|nccl)")
# Version nodes that are not the library's SONAME.
NODES = {"NVSHMEM": "nvshmem"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def library_of(soname):
    stem = soname.split(".so")[0]
    return next((name for name, known in LIBRARIES.items() if known["stem"] == stem), None)


def library_of_symbol(name, node):
    if node:
        return NODES.get(node) or library_of(node)
    # cuFile before the driver: its names begin like the driver's. NVSHMEM has unversioned functions, too.
    order = sorted(LIBRARIES.items(), key=lambda item: -len(item[1]["prefix"]))
    return next((library for library, known in order if known["prefix"] and re.match(known["prefix"], name)), None)


def soname_of(library, major):
    """As the vendor's library of that CUDA is called; "" where this file does not know that version."""
    number = LIBRARIES[library]["number"]
    number = number.get(major, "") if isinstance(number, dict) else number
    return "" if number == "" else f"{LIBRARIES[library]['stem']}.so.{number}"


def scan(torch_dir):
    torch_dir = pathlib.Path(torch_dir)
    libraries = {name: {"soname": "", "node": "", "functions": set()} for name in LIBRARIES}
    uncovered = []
    for path in sorted((torch_dir / "lib").glob("lib*.so")):
        for soname in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path)):
            if not VENDOR.match(soname):
                continue
            library = library_of(soname)
            if library:
                libraries[library]["soname"] = soname
            else:
                uncovered.append(f"{path.name} needs {soname}")
        for symbol in run("nm", "-D", "--undefined-only", path).split("\n"):
            # "  U cudaMalloc@libcudart.so.13"; weak ones ("w") are there or not, as the vendor has it.
            kind, _, full = symbol.strip().partition(" ")
            name, _, node = full.partition("@")
            if kind != "U" or (node and not VENDOR.match(node) and node not in NODES):
                continue
            library = library_of_symbol(name, node)
            if library:
                libraries[library]["functions"].add(name)
                libraries[library]["node"] = node or libraries[library]["node"]
            elif node:
                uncovered.append(f"{path.name} imports {name} of {node}")
    if uncovered:
        sys.exit("error: this LibTorch uses libraries that the emulated card has no stand-in for:\n  " + "\n  ".join(uncovered) +
                 "\nAdd them to LIBRARIES in emulator/generate.py and give each its folder.")
    libraries["driver"]["functions"] |= driver_functions(torch_dir)
    major = int(libraries["runtime"]["soname"].rpartition(".")[2] or 0)
    for library, known in libraries.items():
        known["soname"] = known["soname"] or soname_of(library, major)
        known["functions"] |= vendor_functions(torch_dir, known["soname"])
        add_listed(library, known, major)
    return {"libraries": libraries, "architectures": architectures(torch_dir), "versions": versions(torch_dir)}


def listed(major):
    libraries = {}
    for library, facts in LIBRARIES.items():
        if isinstance(facts["number"], dict):
            libraries[library] = {"soname": soname_of(library, major), "node": "", "functions": set()}
            add_listed(library, libraries[library], major)
    return {"libraries": libraries, "listed": True}


def released(facts_file):
    facts = json.loads(pathlib.Path(facts_file).read_text())
    nodes = {library: node for node, library in NODES.items()}
    libraries = {library: {"soname": soname_of(library, facts["cuda"]), "node": nodes.get(library, ""), "functions": set()} for library in LIBRARIES}
    for library, known in libraries.items():
        add_listed(library, known, facts["cuda"])
    return {"libraries": libraries, "architectures": facts["architectures"], "versions": facts["versions"]}


def add_listed(library, known, major):
    """What the vendors export besides; a library of one name serves every CUDA."""
    one_for_all = not isinstance(LIBRARIES[library]["number"], dict)
    known["functions"] |= listed_exports(library, None if one_for_all else major)
    if not known["node"] and not LIBRARIES[library]["prefix"] and known["functions"]:
        known["node"] = known["soname"]
    known["functions"] = sorted(known["functions"])


def driver_functions(torch_dir):
    """What LibTorch asks of the driver by name and cannot do without: it looks all of them up before it uses one."""
    header = (torch_dir / "include/c10/cuda/driver_api.h").read_text()
    required = re.search(r"#define C10_LIBCUDA_DRIVER_API_REQUIRED\(_\)((?:.*\\\n)*.*)", header)
    if not required:
        sys.exit(f"error: {torch_dir}/include/c10/cuda/driver_api.h: no list C10_LIBCUDA_DRIVER_API_REQUIRED, which names what "
                 "this LibTorch asks of the driver.")
    return set(re.findall(r"_\((cu\w+),", required[1]))


def vendor_functions(torch_dir, soname):
    """What else the vendor's own library offers, where the small packages beside torch hold it: programs may link to it."""
    if not soname.startswith(("libcudart", "libcupti")):
        return set()
    found = sorted(torch_dir.parent.glob(f"nvidia/*/lib/{soname}"))
    symbols = run("nm", "-D", "--defined-only", found[0]).split() if found else []
    return {name for name in (symbol.partition("@")[0] for symbol in symbols) if re.match(r"(__)?(cuda|cupti)[A-Z]", name)}


def read_exports(path):
    """{None: functions of every CUDA, 12: those of CUDA 12 alone, ...}"""
    lists, section = {None: set()}, None
    for line in path.read_text().splitlines() if path.exists() else []:
        heading = re.fullmatch(r"\[(\d+)\]", line)
        if heading:
            section = int(heading[1])
            lists[section] = set()
        elif line and not line.startswith("#"):
            lists[section].add(line)
    return lists


def listed_exports(library, major=None):
    """What the vendors' libraries of that CUDA export, of those that were looked at; without `major`, of any."""
    lists = read_exports(EMULATOR / library / "exports.txt")
    return set().union(*(names for section, names in lists.items() if section is None or major in (None, section)))


def exported_by(vendor_library):
    symbols = [line.split() for line in run("nm", "-D", "--defined-only", vendor_library).splitlines()]
    return {parts[-1].partition("@")[0] for parts in symbols if parts[-2] in "TWi" and re.match(r"(__)?p?(cu|nv|nccl)", parts[-1])}


def add_exports(path, major, vendor_library):
    path, major = pathlib.Path(path), int(major)
    lists = read_exports(path)
    every = lists.pop(None)
    of = {number: every | names for number, names in lists.items()}
    of.setdefault(major, set())
    of[major] |= exported_by(vendor_library)
    every = set.intersection(*of.values())
    text = "# What the vendors' libraries export; see `generate.py exports`.\n" + "".join(f"{name}\n" for name in sorted(every))
    for number, names in sorted(of.items()):
        text += f"[{number}]\n" + "".join(f"{name}\n" for name in sorted(names - every))
    path.write_text(text)


def versions(torch_dir):
    """Versions of the vendor's libraries that this LibTorch is released with; PyTorch chooses between operators by them."""
    metadata = "".join(path.read_text() for path in sorted(torch_dir.parent.glob("torch-*.dist-info/METADATA")))
    found = {}
    for name in ("cudnn", "nccl"):
        pin = re.search(rf"Requires-Dist: nvidia-{name}-cu\d+ *\(?==(\d+)\.(\d+)\.(\d+)", metadata)
        if not pin:
            sys.exit(f"error: no version of {name} in {torch_dir.parent}/torch-*.dist-info/METADATA: this LibTorch does not say which "
                     f"nvidia-{name} it is released with.")
        found[name] = [int(part) for part in pin.groups()]
    return found


def architectures(torch_dir):
    """Compute capabilities that this LibTorch has code for (torch.cuda.get_arch_list()): [75, 80, ...]."""
    text = (torch_dir / "lib" / "libtorch_python.so").read_bytes()
    lists = re.findall(rb"\0((?:(?:sm|compute)_\d+[af]? ?){2,})\0", text)
    if len(lists) != 1:
        sys.exit(f"error: {torch_dir}/lib/libtorch_python.so: expected one list of architectures (sm_75 sm_80 ...), found {len(lists)}.")
    return [int(arch) for arch in re.findall(r"sm_(\d+)", lists[0].decode())]


def read_entry_points(path):
    """[(class, pattern)]; the first pattern that fits wins."""
    rules, kind = [], None
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        heading = re.match(r"\[(no-op|work|handle|ready|refused|int \d+|size_t(?: \d+)+)\] .+", line)
        if heading:
            kind = heading[1]
        elif kind and not line.startswith("["):
            rules += [(kind, pattern) for pattern in line.split()]
        else:
            sys.exit(f"error: {path}:{number}: expected '[no-op] reason', '[work] reason', '[handle] reason', '[ready] reason', '[refused] reason', '[int N] reason' or "
                     f"'[size_t N ...] reason' before names, found: {line}")
    return rules


def defined_in(objects):
    symbols = set()
    for line in run("nm", "--defined-only", "--extern-only", *objects).splitlines():
        parts = line.split()
        if len(parts) == 3 and not parts[2].startswith("_ZN"):
            symbols.add(parts[2])
    return {name for name in symbols if re.match(r"(__)?[a-z][A-Za-z0-9_]*$", name) and not name.startswith(("_Z", "peakbench_"))}


def stub(name, kind, refusal):
    """A function that answers; `kind` as in ENTRY_POINTS.txt."""
    # What is refused lies together, so that a question for a function by its name can prefer one that answers.
    section = ', section("peakbench_refused")' if kind == "refused" else ""
    head = f'__attribute__((visibility("default"){section})) long {name}'
    if kind == "refused":
        return f'{head}(void) {{ peakbench_emulator_refuse("{name}"); return {refusal}; }}'
    if kind in ("no-op", "work"):
        return f"{head}(void) {{ {'peakbench_emulator_work(); ' if kind == 'work' else ''}return 0; }}"
    if kind == "handle":
        return f"{head}(long a0) {{ return peakbench_emulator_give_handle((void**)a0); }}"
    if kind == "ready":
        return f"{head}(void) {{ return peakbench_ready(); }}"
    value, *places = kind.split()
    arguments = ", ".join(f"long a{i}" for i in range(max(map(int, places)) + 1))
    zeros = "".join(f"if (a{at}) *(unsigned {'int' if value == 'int' else 'long'}*)a{at} = 0; " for at in places)
    return f'{head}({arguments}) {{ peakbench_emulator_no_workspace("{name}"); {zeros}return 0; }}'


def write_stubs(scan_file, library, entry_points, stubs, exports, objects):
    scanned = json.loads(pathlib.Path(scan_file).read_text())
    wanted = scanned["libraries"][library]
    rules = read_entry_points(entry_points)
    written = defined_in(objects) if objects else set()
    refusal = LIBRARIES[library]["refusal"]
    source = ["// Generated by emulator/generate.py."]
    source += [f"void peakbench_emulator_{what};" for what in ("refuse(const char* name)", "no_workspace(const char* function)", "work(void)")]
    source += ["int peakbench_emulator_give_handle(void** out);", "int peakbench_ready(void);"]
    unknown, used = [], set()
    for name in sorted(set(wanted["functions"]) - written):
        if GIVES_A_TEXT.search(name) and name not in BY_POINTER:
            sys.exit(f"error: {name} gives a text, which a stub cannot: write it by hand in emulator/{library}/")
        rule = next((rule for rule in rules if fnmatch.fnmatchcase(name, rule[1])), None)
        used.add(rule)
        if not rule:
            unknown.append(name)
        source.append(stub(name, rule[0] if rule else "refused", refusal))
    names = sorted(set(wanted["functions"]) | written)
    body = "global:\n" + "".join(f"    {name};\n" for name in names) if names else ""
    script = f"{wanted['node']} {{\n  {body}  local: *;\n}};\n".lstrip() if wanted["node"] else f"{{\n  {body}  local: *;\n}};\n"
    pathlib.Path(stubs).write_text("\n".join(source) + "\n")
    pathlib.Path(exports).write_text(script)
    unused = [pattern for rule in rules if rule not in used for pattern in [rule[1]]]
    if unused and "listed" not in scanned:  # what LibTorch needs not, the lists of a CUDA may
        print(f"note: {entry_points}: nothing here needs {' '.join(unused)}")
    unknown = sorted(set(unknown) - listed_exports(library))  # of those in the list it is known
    if unknown:
        print(f"note: {wanted['soname']}: {len(unknown)} functions are neither emulated nor listed in {entry_points} and will be refused: "
              f"{' '.join(unknown[:20])}{' ...' if len(unknown) > 20 else ''}")


def write_versions(scan_file, out):
    lines = ["// Generated by emulator/generate.py.", "#pragma once", "namespace peakbench::emulator {"]
    for name, parts in json.loads(pathlib.Path(scan_file).read_text())["versions"].items():
        for part, value in zip(("Major", "Minor", "Patch"), parts):
            lines.append(f"inline constexpr int k{name.capitalize()}{part} = {value};")
    pathlib.Path(out).write_text("\n".join(lines + ["}"]) + "\n")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "scan":
        pathlib.Path(arguments[2]).write_text(json.dumps(scan(arguments[1]), indent=1) + "\n")
    elif len(arguments) == 3 and arguments[0] == "versions":
        write_versions(*arguments[1:])
    elif len(arguments) == 3 and arguments[0] == "listed":
        pathlib.Path(arguments[2]).write_text(json.dumps(listed(int(arguments[1])), indent=1) + "\n")
    elif len(arguments) == 3 and arguments[0] == "released":
        pathlib.Path(arguments[2]).write_text(json.dumps(released(arguments[1]), indent=1) + "\n")
    elif len(arguments) == 4 and arguments[0] == "exports":
        add_exports(*arguments[1:])
    elif len(arguments) >= 6 and arguments[0] == "stubs":
        write_stubs(*arguments[1:6], arguments[6:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
