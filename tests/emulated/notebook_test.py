"""Memory and reads of a notebook's cells: by the number that the notebook shows."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE, PEAKBENCH

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

    def test_where_memory_ran_out(self):
        _, said = self.figures(CELLS, "t4-16gb,memory=48MiB", exit_code=1)
        self.assertRegex(said, r"asked for 64\.0 MiB \(\S+ at In\[12\]:2\)")

    def test_a_size_that_a_value_decides_is_seen_as_in_a_script(self):
        script, _ = self.figures("import torch\n" + SIZE, "t4-16gb")
        cell, _ = self.figures(KERNEL + f"cell(1, 'import torch')\ncell(2, {SIZE!r})\n", "t4-16gb")
        self.assertEqual(cell["verdict"]["kind"], script["verdict"]["kind"])
        self.assertNotEqual(script["verdict"]["kind"], "exact")
        self.assertIn("In[2]:1", json.dumps(cell["verdict"]))
