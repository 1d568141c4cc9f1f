"""Memory and reads of a notebook's cells: by the number that the notebook shows."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE, PEAKBENCH

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
HAS_IPYTHON = subprocess.run([ORACLE, "-c", "import IPython"], capture_output=True, check=False).returncode == 0

PATIENCE_S = 200

# As ipykernel does it: a cell's code is named by its text, IPython keeps the number of each name
# (IPython/core/compilerop.py, CachingCompiler.cache), and linecache alone has the source.
KERNEL = """
import linecache, sys, types
shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={}))
shells = types.SimpleNamespace(_instance=shell)
sys.modules["IPython.core.interactiveshell"] = types.SimpleNamespace(InteractiveShell=shells)
def cell(number, text):
    name = f"/tmp/ipykernel_7/{abs(hash(text))}.py"
    if NUMBERED:
        shell.compile._filename_map[name] = number
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())
"""
CELLS = KERNEL + """
cell(1, "import torch\\nkept = []\\n")
for number in (3, 4):
    cell(number, "kept.append(torch.zeros(1 << 22, device='cuda'))\\n")
cell(12, "# a comment\\nkept.append(torch.zeros(1 << 24, device='cuda'))\\n")
"""
# As IPython 9 runs a magic: the next cell's number is counted by then.
MAGIC = KERNEL + """
import types, torch, peakbench
ended = None
class Compiler:
    _filename_map = {}
    def cache(self, code, number=0, raw_code=None):
        name = f"/tmp/ipykernel_7/{abs(hash(raw_code))}.py"
        self._filename_map[name] = number
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        return name
class Shell:
    compile, displayhook = Compiler(), types.SimpleNamespace(prompt_count=0)
    def register_magic_function(self, function, kind, name):
        assert (kind, name) == ("cell", "peakbench")
        self.magic = function
    def run_cell(self, text, store_history):
        assert not store_history
        success = True
        try:
            exec(compile(text, self.compile.cache(text, self.displayhook.prompt_count + 1, raw_code=text), "exec"), globals())
        except ZeroDivisionError:
            success = False
        return types.SimpleNamespace(success=success)
    def cell(self, number, text, line=""):
        self.displayhook.prompt_count = number
        return self.magic(line, text)
class UsageError(Exception):
    pass
sys.modules["IPython.core.error"] = types.SimpleNamespace(UsageError=UsageError)
shell = shells._instance = Shell()
peakbench.load_ipython_extension(shell)
"""
CELLS_OF_MAGIC = """
kept = []
peak = shell.cell(3, "kept.append(torch.zeros(1 << 22, device='cuda'))\\nkept.append(torch.zeros(1 << 20, device='cuda'))\\ntorch.zeros(1 << 22, device='cuda')\\n")
assert [(part.line, part.bytes >> 20) for part in peak.parts] == [("In[3]:2", 16), ("In[3]:4", 16), ("In[3]:3", 4)], peak.parts
# Of this cell: what is alive from before, and not what the cell before peaked at.
peak = shell.cell(4, "kept.append(torch.zeros(1 << 20, device='cuda'))\\n")
assert [(part.line, part.bytes >> 20) for part in peak.parts] == [("In[3]:2", 16), ("In[3]:3", 4), ("In[4]:2", 4)], peak.parts
assert peak.allocated_bytes == torch.cuda.max_memory_allocated() == 24 << 20
page = peak._repr_html_()
assert page.count("<tr>") == 4 and "<td>In[3]:2</td><td>16.000 MiB</td><td>67%</td><td>activation or temporary</td>" in page, page
assert "cache" not in vars(shell.compile)
for number, text, line, said in ((5, "1 / 0", "", "the cell failed; its peak until then: 24.000 MiB allocated"), (6, "", "words", "takes no words, found: words")):
    try:
        shell.cell(number, text, line)
    except UsageError as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)
print("checked")
"""
# By IPython itself.
IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for text in ("%load_ext peakbench", "import torch", "%%peakbench\\nkept = torch.zeros(1 << 22, device='cuda')"):
    shell.run_cell(text, store_history=True)
(part,) = shell.user_ns["_3"].parts
assert (part.line, part.bytes) == ("In[3]:2", 16 << 20), part
assert shell.run_cell("%%peakbench\\n1 / 0", store_history=True).success is False
print("checked")
"""
SIZE = "x = torch.zeros(int(torch.randn(1 << 20, device='cuda').max() * 0 + 8), device='cuda')\n"


class Notebook(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="peakbench-notebook-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def figures(self, program, card, exit_code=0, numbered=True):
        (self.folder / "kernel.py").write_text(f"NUMBERED = {numbered}\n{program}", encoding="utf-8")
        done = subprocess.run([PEAKBENCH, "--card", card, "--json=figures.json", "--", ORACLE, "kernel.py"], cwd=self.folder,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads((self.folder / "figures.json").read_text(encoding="utf-8")), " ".join(done.stderr.split())

    def test_the_number_of_the_cell(self):
        _, said = self.figures(CELLS, "t4-16gb")
        self.assertIn("Filled by: In[12]:2 67% (temporary), In[3]:1 17% (temporary), In[4]:1 17% (temporary)", said)
        _, said = self.figures(CELLS, "t4-16gb", numbered=False)
        self.assertIn("Filled by: <cell 2>:2 67% (temporary), <cell 1>:1 33% (temporary)", said)

    def ran(self, program):
        (self.folder / "kernel.py").write_text(program, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))}
        done = subprocess.run([PEAKBENCH, "emulate", "--card", "t4-16gb", "--", ORACLE, "kernel.py"], cwd=self.folder, env=environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)  # fmt: skip
        self.assertIn("checked", done.stdout, done.stdout + done.stderr)

    def test_the_magic_for_a_cell(self):
        self.ran("NUMBERED = False\n" + MAGIC + CELLS_OF_MAGIC)

    @unittest.skipUnless(HAS_IPYTHON, "the oracle has no IPython")
    def test_the_magic_in_ipython(self):
        self.ran(IPYTHON)

    def test_where_memory_ran_out(self):
        _, said = self.figures(CELLS, "t4-16gb,memory=48MiB", exit_code=1)
        self.assertRegex(said, r"asked for 64\.0 MiB \(\S+ at In\[12\]:2\)")

    def test_a_size_that_a_value_decides_is_seen_as_in_a_script(self):
        script, _ = self.figures("import torch\n" + SIZE, "t4-16gb")
        cell, _ = self.figures(KERNEL + f"cell(1, 'import torch')\ncell(2, {SIZE!r})\n", "t4-16gb")
        self.assertEqual(cell["verdict"]["kind"], script["verdict"]["kind"])
        self.assertNotEqual(script["verdict"]["kind"], "exact")
        self.assertIn("In[2]:1", json.dumps(cell["verdict"]))
