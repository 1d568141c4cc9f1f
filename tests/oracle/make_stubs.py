"""Makes libraries under the vendor libraries' names, so that a CUDA build of PyTorch can be imported without them for the CPU.

usage: make_stubs.py TORCH_LIB OUT_DIR

Reads from the dynamic symbol tables in TORCH_LIB which libraries are needed and which of their functions, under which symbol
versions, and writes OUT_DIR/SONAME for each that TORCH_LIB cannot find by its RPATH. Nothing behind them: a function that is
called after all prints its name and ends the process, and there is no card as far as PyTorch can tell.
"""

import pathlib
import re
import subprocess
import sys
from collections import defaultdict

VENDOR = re.compile(r"lib(cu|nv|nccl)")
# Libraries without symbol versions: their functions are known by their first letters.
UNVERSIONED = {"libnccl.so.2": "nccl", "libcusparseLt.so.0": "cusparseLt", "libcufile.so.0": "cuFile"}
VERSION_NODES = {"NVSHMEM": "libnvshmem_host.so.3"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(libraries):
    """SONAME -> {version node or "": function names}."""
    needed, functions = set(), defaultdict(lambda: defaultdict(set))
    for library in libraries:
        needed.update(name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", library)) if VENDOR.match(name))
        for symbol in run("nm", "-D", "--undefined-only", library).split():
            name, _, node = symbol.partition("@")
            if node.startswith("lib") or node in VERSION_NODES:
                functions[VERSION_NODES.get(node, node)][node].add(name)
            elif not node:
                for soname, prefix in UNVERSIONED.items():
                    if name.startswith(prefix):
                        functions[soname][""].add(name)
    return {soname: functions[soname] for soname in needed}


def write_stub(soname, nodes, folder):
    source = ["#include <cstdio>", "#include <cstdlib>"]
    script = []
    for node, names in nodes.items():
        for name in sorted(names):
            source.append(f'extern "C" void {name}() {{ std::fputs("{name}: the vendor\'s {soname} is not here\\n", stderr); std::abort(); }}')
        if node:
            script.append(f"{node} {{ global: {' '.join(name + ';' for name in sorted(names))} local: *; }};")
    if not script and soname not in UNVERSIONED:
        script.append(f"{soname} {{ local: *; }};")
    base = folder / soname
    base.with_suffix(".cpp").write_text("\n".join(source) + "\n")
    command = ["g++", "-shared", "-fPIC", "-O0", "-fno-builtin", f"-Wl,-soname,{soname}", "-o", base, base.with_suffix(".cpp")]
    if script:
        base.with_suffix(".map").write_text("\n".join(script) + "\n")
        command.append(f"-Wl,--version-script={base.with_suffix('.map')}")
    subprocess.run(command, check=True)
    base.with_suffix(".cpp").unlink()
    base.with_suffix(".map").unlink(missing_ok=True)


def main(torch_lib, out):
    torch_lib, out = pathlib.Path(torch_lib), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    # libcaffe2_nvrtc is opened by name when a card is used, and needs the driver: that one must never be replaced here.
    libraries = [path for path in sorted(torch_lib.glob("lib*.so")) if path.name != "libcaffe2_nvrtc.so"]
    for soname, nodes in wanted(libraries).items():
        found = list(torch_lib.parent.parent.glob(f"nvidia/*/lib/{soname}"))
        if not found:
            write_stub(soname, nodes, out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
