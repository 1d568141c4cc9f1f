#!/usr/bin/env python3
"""Looks at a wheel of Peakbench, and names it by the systems it runs on.

    ci/check_wheel.py WHEEL                    prints what it found
    ci/check_wheel.py --name-into DIR WHEEL    moves it to DIR under the name that its tag gives it

Runs in the environment that ci/wheel makes. Exit status 1, with every finding, where

- a program or a stand-in of the emulated card needs PyTorch: a library of it, or one of its symbols. Only workers and what computes values do.
- a file needs a library that is neither in the wheel, nor of PyTorch, nor one that every system of the tag has, or a newer version of one.
- the wheel is larger than kMostMegabytes, or holds a script in .data/.
"""

import argparse
import fnmatch
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# What docs/how-to/install.md says.
kMostMegabytes = 25

# Of PyTorch's, and what its libraries bring into the process.
kPyTorch = ["libtorch*.so", "libc10*.so", "libshm.so"]
# Mangled names in PyTorch's namespaces: at, c10, torch, caffe2.
kPyTorchSymbol = re.compile(r"^_Z(N|NK|NSt|TI|TV|TS|GV)?K?(2at|3c10|5torch|6caffe2)\d")
# Files whose purpose is PyTorch's: workers, and what computes values inside a program.
kForPyTorch = ["workers/*", "libraries/*", "source/*"]
kLoader = "ld-linux-x86-64.so.2"


def of_pytorch(libraries, symbols):
    """Those that are PyTorch's."""
    return [one for one in libraries if any(fnmatch.fnmatch(one, pattern) for pattern in kPyTorch)] + list(filter(kPyTorchSymbol.match, symbols))


class Binary:
    """What a file in ELF needs."""

    def __init__(self, name, path):
        from elftools.elf.dynamic import DynamicSection
        from elftools.elf.elffile import ELFFile
        from elftools.elf.gnuversions import GNUVerNeedSection

        self.name = name
        self.libraries, self.versions, self.symbols = [], {}, []
        with open(path, "rb") as file:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                if isinstance(section, DynamicSection):
                    self.libraries += [tag.needed for tag in section.iter_tags("DT_NEEDED")]
                elif isinstance(section, GNUVerNeedSection):
                    for library, needed in section.iter_versions():
                        self.versions.setdefault(library.name, set()).update(one.name for one in needed)
            symbols = elf.get_section_by_name(".dynsym")
            self.symbols = [symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"] if symbols else []

    def is_for_pytorch(self):
        return any(fnmatch.fnmatch(self.name, pattern) for pattern in kForPyTorch)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def policies():
    """manylinux's policies, the oldest system first."""
    import auditwheel.policy

    file = Path(auditwheel.policy.__file__).parent / "manylinux-policy.json"
    known = json.loads(file.read_text())
    return sorted((one for one in known if one["name"] != "linux"), key=lambda one: -one["priority"])


def objections(binary, policy, carried):
    """What a system of that policy lacks."""
    found = []
    outside = lambda one: one not in carried and not any(fnmatch.fnmatch(one, pattern) for pattern in kPyTorch)
    for library in filter(outside, binary.libraries):
        if library not in policy["lib_whitelist"] and library != kLoader:
            found.append(f"{binary.name} needs {library}")
    has = policy["symbol_versions"]["x86_64"]
    for library, versions in binary.versions.items():
        for version in filter(lambda _: outside(library), versions):
            kind, _, number = version.partition("_")
            if number not in has.get(kind, []):
                found.append(f"{binary.name} needs {version} of {library}")
    return found


def look(unpacked):
    """(tag, findings) of a wheel's files."""
    package = unpacked / "peakbench"
    files = [path for path in sorted(package.rglob("*")) if path.is_file() and is_elf(path)]
    binaries = [Binary(str(path.relative_to(package)), path) for path in files]
    findings = []
    if not any(one.name == "bin/peakbench" for one in binaries):
        findings.append("bin/peakbench is not in it")
    for binary in binaries:
        if binary.is_for_pytorch():
            continue
        for need in of_pytorch(binary.libraries, binary.symbols):
            findings.append(f"{binary.name} needs PyTorch's {need}, and is there without PyTorch")
    findings += [f"{path.relative_to(unpacked)}: scripts are to be shims" for path in unpacked.glob("*.data/scripts/*")]

    carried = {path.name for path in files}
    least = {}
    for policy in policies():
        least = {policy["name"]: [said for one in binaries for said in objections(one, policy, carried)]}
        if not least[policy["name"]]:
            return policy["name"], findings
    return None, findings + next(iter(least.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--name-into", type=Path, metavar="DIR")
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["wheel", "unpack", "--dest", scratch, str(asked.wheel)], check=True, stdout=subprocess.DEVNULL)
        (unpacked,) = Path(scratch).iterdir()
        tag, findings = look(unpacked)
    megabytes = asked.wheel.stat().st_size / 1e6
    if megabytes > kMostMegabytes:
        findings.append(f"it has {megabytes:.1f} MB; at most {kMostMegabytes} are promised")
    for finding in findings:
        print(f"error: {asked.wheel.name}: {finding}", file=sys.stderr)
    if findings:
        return 1
    print(f"{asked.wheel.name}: {megabytes:.1f} MB, {tag}_x86_64")
    if asked.name_into:
        subprocess.run(["wheel", "tags", "--remove", "--platform-tag", f"{tag}_x86_64", str(asked.wheel)], check=True, stdout=subprocess.DEVNULL)
        (named,) = asked.wheel.parent.glob("*manylinux*.whl")
        named.rename(asked.name_into / named.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
