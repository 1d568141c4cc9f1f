"""What python/peakbench says of the program that it is used in, and of runs: held against PyTorch's own figures, run.json and the traces.

usage: program_test.py PEAKBENCH
Exit code 77 without the oracle: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

PEAKBENCH = Path(sys.argv.pop(1)).resolve()
PYTHON = os.environ.get("PEAKBENCH_ORACLE")
PACKAGE = Path(__file__).resolve().parents[2] / "python"


class Program(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-python-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_it(self, text, *before, code=0):
        (self.folder / "program.py").write_text(textwrap.dedent(text), encoding="utf-8")
        paths = ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": paths, "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([*before, PYTHON, "program.py"], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def emulated(self, text, *options, code=0):
        return self.run_it(text, PEAKBENCH, "emulate", "--card", "h100-80gb", *options, "--", code=code)

    TRAINING = """
        import torch, peakbench
        model = torch.nn.Linear(1000, 1000, device="cuda")
        optimizer = torch.optim.Adam(model.parameters())
        def train(batch):
            model(torch.zeros(batch, 1000, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """

    def test_the_peak_and_its_parts(self):
        self.emulated(self.TRAINING + """
        for batch in (10, 5000, 20):
            peakbench.step()
            train(batch)
            peak = peakbench.peak()
            assert peak.allocated_bytes == torch.cuda.max_memory_allocated(), batch
            assert peak.reserved_bytes == torch.cuda.max_memory_reserved()
            assert peak.requested_bytes == torch.cuda.memory_stats()["requested_bytes.all.peak"]
            assert sum(part.bytes for part in peak.parts) == peak.allocated_bytes, peak
        of = lambda category: sum(part.bytes for part in peak.parts if part.category == category)
        assert of("parameter") == 4_000_256 + 4_096, of("parameter")
        assert {part.line for part in peak.parts if part.category == "optimizer state"} == {"program.py:7"}
        """)

    def test_a_recording_that_is_full_tells_no_lines(self):
        self.emulated(self.TRAINING + """
        import os
        train(10)
        assert peakbench.peak().parts
        os.environ["PEAKBENCH_TRACE_MOST"] = str(8 << 20)  # as if it had ended here
        peak = peakbench.peak()
        assert peak.allocated_bytes == torch.cuda.max_memory_allocated()
        assert peak.parts == () and "the recording of this process is full" in peak.note, peak
        """)

    def test_it_is_free_until_used_and_says_why_it_cannot(self):
        said = self.run_it("""
        import sys, peakbench
        assert not {"torch", "sqlite3", "subprocess"} & set(sys.modules), sorted(sys.modules)
        for name in peakbench.__all__:
            getattr(peakbench, name)
        assert "torch" not in sys.modules
        try:
            peakbench.nothing
        except AttributeError as error:
            print(error)
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        for ask in (peakbench.peak, peakbench.step, lambda: peakbench.fits("h100"), lambda: peakbench.fits("h100-80gb")):
            try:
                ask()
            except (peakbench.MemoryUnavailable, ValueError) as error:
                print(error)
        """)
        self.assertEqual(said.count("there is no CUDA card: start it with `peakbench emulate -- python3 ...`, which needs no GPU"), 3)
        self.assertIn('unknown card "h100"; did you mean "h100-80gb"?', said)
        self.assertIn("module 'peakbench' has no attribute 'nothing'", said)

    def test_which_card_it_fits(self):
        said = self.emulated("""
        import torch, peakbench
        kept = [torch.zeros(5 << 28, device="cuda") for _ in range(4)]  # 20 GiB
        assert peakbench.fits("rtx-4090-24gb") and not peakbench.fits("rtx-4080-16gb")
        print(peakbench.fits("rtx-4080-16gb"))
        del kept[:2]
        peakbench.step()
        print(peakbench.fits("rtx-4080-16gb"))
        """)
        self.assertIn("20.000 GiB reserved at the peak, rtx-4080-16gb has ", said)
        self.assertIn(": it does not fit\n", said)
        self.assertIn(": it may fit, as 10.000 GiB are allocated and the rest is cache", said)

    def test_without_lines_the_note_says_how_to_get_them(self):
        said = self.emulated("import torch, peakbench\nx = torch.zeros(1000, device='cuda')\nprint(peakbench.peak())\nprint(peakbench.peak().note)", "--no-lines")
        self.assertIn("4.000 KiB allocated, 2.000 MiB reserved\nstart the program with `peakbench emulate", said)

    def test_a_part_is_recorded_and_read_again(self):
        said = self.emulated(self.TRAINING + """
        train(10)
        torch.cuda.synchronize(); torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        try:
            with peakbench.trace("out"):
                train(3000)
                1 / 0
        except ZeroDivisionError:
            pass
        run = peakbench.load("out")
        (case,) = run.cases
        assert case.status == "ok" and case.device == "cuda:0"
        assert case.reserved_bytes == torch.cuda.max_memory_reserved(), (case, torch.cuda.max_memory_reserved())
        alive = case.alive_at_peak()
        assert sum(one.bytes for one in alive) == sum(case.at_peak.values()) == case.allocated_bytes
        assert case.allocated_bytes == torch.cuda.max_memory_allocated(), (case, torch.cuda.max_memory_allocated())
        page = run._repr_html_()
        assert page.startswith('<iframe sandbox="allow-scripts" srcdoc="') and page.count("<") == 2
        try:
            with peakbench.trace("out"):
                pass
        except FileExistsError as error:
            print(error)
        """)
        self.assertIn("out is there already: name another folder, or delete it", said)
        self.assertTrue((self.folder / "out/report/index.html").is_file())

    def test_a_run_that_peakbench_wrote(self):
        # No report in it, and a title that would be markup.
        subprocess.run([PEAKBENCH, "run", "--model", "vit-b-16,layers=1", "--strategy", "baseline", "--device", "emulated:h100-80gb", "--out", self.folder / "run"],
                       check=True, capture_output=True)  # fmt: skip
        shutil.rmtree(self.folder / "run/report")
        file = self.folder / "run/run.json"
        run = json.loads(file.read_text())
        run["title"] = "<script>"
        file.write_text(json.dumps(run))
        memory = run["cases"][0]["memory"]
        said = self.run_it("""
        import dataclasses, peakbench
        run = peakbench.load("run")
        (case,) = run.cases
        print(case.allocated_bytes, case.reserved_bytes, case.requested_bytes, sum(one.bytes for one in case.alive_at_peak()))
        page = run._repr_html_()
        assert "&lt;script&gt;" in page and "<script>" not in page and "<table>" in page
        try:
            case.status = "other"
        except dataclasses.FrozenInstanceError:
            print("frozen")
        try:
            print(len(run.frame()), *run.frame()["allocated_bytes"])
        except ImportError as error:
            print(error)
        for wrong in ("nowhere", "broken", "other"):
            try:
                peakbench.load(wrong)
            except (FileNotFoundError, ValueError) as error:
                print(error)
        """.replace("import dataclasses", """import os
        for name, text in (("broken", "{"), ("other", "[]")):
            os.makedirs(name)
            with open(name + "/run.json", "w") as file: file.write(text)
        import dataclasses"""))  # fmt: skip
        figures = (memory["peak_allocated_bytes"], memory["peak_reserved_bytes"], memory["peak_requested_bytes"], memory["peak_allocated_bytes"])
        self.assertEqual(said.splitlines()[:2], [" ".join(map(str, figures)), "frozen"])
        self.assertIn(said.splitlines()[2], (f"1 {memory['peak_allocated_bytes']}", "frame() needs pandas: pip install pandas"))
        self.assertIn("nowhere/run.json is not there: name the folder that `peakbench run`", said)
        self.assertEqual(said.count("not a run of Peakbench"), 2)


if __name__ == "__main__":
    if not PYTHON or not shutil.which(PYTHON):
        print("SKIP: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python")
        sys.exit(77)
    unittest.main()
