"""What python/peakbench says of the program that it is used in, and of runs: held against PyTorch's own figures, run.json and the traces."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import textwrap
import time
import tracemalloc
import unittest
from pathlib import Path

import peakbench
from given import ORACLE as PYTHON, PEAKBENCH

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
        return self.run_it(text, PEAKBENCH, "emulate", "--details", "--card", "h100-80gb", *options, "--", code=code)

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
        self.assertIn(" GiB, up to 767.000 MiB of it for a CUDA context: ", said)
        self.assertIn(": it does not fit\n", said)
        self.assertIn(": it may fit, as 10.000 GiB are allocated and the rest is cache", said)

    def test_a_cuda_context_has_to_fit_too(self):
        """14.648 of a T4's 14.748 GiB leave 102 MiB, and no context that anybody measured is below 256 MiB."""
        said = self.emulated("""
        import torch, peakbench
        x = torch.empty(7500 << 21, dtype=torch.uint8, device="cuda")
        for card in ("t4-16gb", "t4-16gb,context=500MiB", "t4-16gb,context=90MiB", "t4-16gb,context=0", "t4-16gb,memory=16GiB", "h100-80gb", "h100-80gb,memory=15GiB"):
            fit = peakbench.fits(card)
            print(bool(fit), fit.context_bytes >> 20, fit)
        for card in ("t4-16gb,context", "t4-16gb,context=5", "t4-16gb,count=2"):
            try:
                peakbench.fits(card)
            except ValueError as error:
                print(error)
        """)
        lines = said.splitlines()
        self.assertEqual([line.split()[:2] for line in lines[:7]], [
            ["False", "767"], ["False", "500"], ["True", "90"], ["True", "0"], ["True", "767"], ["True", "534"], ["False", "534"]])
        self.assertIn("t4-16gb has 14.748 GiB, up to 767.000 MiB of it for a CUDA context: it may not fit with a CUDA context", lines[0])
        self.assertIn("none set aside for a CUDA context: it fits", lines[3])
        self.assertEqual([line.split(": ")[1] for line in lines[7:10]], [
            f'expected memory=SIZE or context=SIZE, like context=500MiB, found "{option}"' for option in ("context", "context=5", "count=2")])

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
        assert case.status == "ok" and case.device == "emulated:h100-80gb"
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

    def test_one_part_at_a_time_is_recorded(self):
        said = self.emulated("""
        import threading, torch, peakbench
        def record(folder):
            try:
                with peakbench.trace(folder):
                    print("recorded", folder)
            except RuntimeError as error:
                print(error)
        with peakbench.trace("outer"):
            kept = torch.zeros(10 << 20, dtype=torch.uint8, device="cuda")
            record("inner")
            thread = threading.Thread(target=record, args=("beside",))
            thread.start()
            thread.join()
            torch.zeros(300 << 20, dtype=torch.uint8, device="cuda")
        (case,) = peakbench.load("outer").cases
        assert case.allocated_bytes == torch.cuda.max_memory_allocated() == 310 << 20, case
        record("after")
        """)
        self.assertEqual(said.count("peakbench.trace() is already recording in this process, and PyTorch keeps one history for all threads: leave that"), 2)
        self.assertIn("recorded after", said)
        self.assertFalse((self.folder / "inner").exists() or (self.folder / "beside").exists())

    def test_the_programs_own_history_goes_on(self):
        self.emulated("""
        import torch, peakbench
        def make(mib):
            return torch.zeros(mib << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.memory._record_memory_history(max_entries=1000)
        make(700)
        kept = make(20)
        with peakbench.trace("out"):
            make(100)
        make(200)
        entries = torch.cuda.memory._snapshot()["device_traces"][0]
        allocated = [entry["size"] >> 20 for entry in entries if entry["action"] == "alloc"]
        assert allocated == [700, 20, 100, 200], allocated
        (case,) = peakbench.load("out").cases
        assert case.allocated_bytes == 120 << 20, case
        """)

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


class OfElsewhere(unittest.TestCase):
    """Runs that anyone may have made: what is alive at the peak is read from plain tables, and soon."""

    ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-python-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def case(self, *statements):
        """Of a run with three allocations of 1000 bytes, which are alive at the peak but for the first; the second is a parameter."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        trace = self.folder / "run/cases/s/trace.sqlite"
        trace.parent.mkdir(parents=True)
        case = {"id": "c", "slug": "s", "status": "ok", "reason": "", "device": "cpu", "memory": {}}
        (self.folder / "run/run.json").write_text(json.dumps({"title": "t", "status": "complete", "cases": [case]}))
        tables = (PACKAGE.parent / "harness/trace/trace_writer.cpp").read_text()
        with contextlib.closing(sqlite3.connect(trace)) as database:
            database.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF")
            for part in ("kTables", "kViews"):
                database.executescript(re.search(part + r' = R"\((.*?)\)"', tables, re.S)[1])
            database.executescript("""
                INSERT INTO trace VALUES ('cpu', 0, 5, 1, NULL, 0); INSERT INTO spaces VALUES (0, 'other'), (1, 'cpu');
                INSERT INTO categories VALUES (0, 'parameter'), (1, 'activation'); INSERT INTO phases VALUES (0, 'build');
                INSERT INTO modules VALUES (0, 'linear'); INSERT INTO operators VALUES (0, 'aten::mm'); INSERT INTO names VALUES (0, 2, 0, 'weight', '', '');
                INSERT INTO allocations VALUES (0, 1, 1, 1, NULL), (2, 5, 5, 0, 0), (3, 5, 5, 1, NULL), (4, 5, 5, 1, NULL);
                INSERT INTO peaks VALUES (0, 4, 9, 9), (1, 3, 2024, 2000);
                INSERT INTO events SELECT value, value = 1, 0, 0, 0, value < 4, NULL, 0, iif(value = 2, 0, NULL), 0, NULL, 4096, 1000, 1000 + 8 * value,
                    NULL, 0, NULL, NULL, NULL FROM json_each('[0, 1, 2, 3, 4]');""")
            for statement in statements:
                database.executescript(statement)
        return peakbench.load(self.folder / "run").cases[0]

    def test_what_is_alive(self):
        alive = self.case().alive_at_peak()
        self.assertEqual([(one.bytes, one.requested_bytes, one.category, one.phase, one.module, one.operator, one.name) for one in alive],
                         [(1024, 1000, "activation", "build", "linear", "", ""), (1016, 1000, "parameter", "build", "linear", "aten::mm", "weight")])  # fmt: skip

    def test_what_a_file_brings_with_it_is_never_run(self):
        view = f"DROP TABLE {{0}}; CREATE VIEW {{0}} AS {self.ENDLESS} SELECT n AS id, 'x' AS name, n AS event, n AS last_event, 1 AS space, 0 AS category, 0 AS own_space FROM r"
        for statements, says in (
            (f"DROP VIEW alive_at_peak; CREATE VIEW alive_at_peak AS {self.ENDLESS} SELECT n AS block_bytes FROM r", None),
            *((view.format(table), f"{table} is no plain table") for table in ("modules", "allocations", "trace", "peaks", "categories")),
            ("DROP TABLE operators; CREATE VIRTUAL TABLE operators USING fts5(id, name); PRAGMA writable_schema = ON; UPDATE sqlite_master SET "
             "sql = replace(sql, 'CREATE VIRTUAL', 'create/**/virtual') WHERE name = 'operators'", "operators is no plain table"),
            ("DROP TABLE names; CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT AS (hex(zeroblob(100000000))))", "names has no plain column name"),
            ("CREATE INDEX i ON names (hex(name))", "names has a generated column or an index"),
            ("DROP TABLE peaks", "it has no table peaks"),
            ("UPDATE events SET module = 7", "modules lacks a row"),
            ("UPDATE modules SET name = x'00'", "modules has a name that is no text"),
            ("UPDATE events SET block_bytes = 'many'", "it has a size that is no number of bytes"),
            ("UPDATE operators SET name = CAST(x'ff' AS TEXT)", "Could not decode"),
        ):  # fmt: skip
            with self.subTest(statements):
                case, began = self.case(statements), time.monotonic()
                if says is None:
                    self.assertEqual(len(case.alive_at_peak()), 2)
                else:
                    with self.assertRaisesRegex(ValueError, re.escape(says)):
                        case.alive_at_peak()
                self.assertLess(time.monotonic() - began, 5)

    def test_a_text_of_many_rows_is_held_once(self):
        """Of a file of a few megabytes: 20,000 rows whose module has a name of a megabyte."""
        case = self.case("UPDATE modules SET name = printf('%.*c', 1000000, 'm'); DELETE FROM events; DELETE FROM allocations",
                         "INSERT INTO events WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 19999) SELECT n, 0, 0, 0, 0, 1, NULL, 0, NULL, 0, "
                         "NULL, 4096, 8, 8, NULL, 0, NULL, NULL, NULL FROM r; UPDATE peaks SET event = 19999; "
                         "INSERT INTO allocations SELECT id, 20000, 20000, 1, NULL FROM events")  # fmt: skip
        tracemalloc.start()
        alive = case.alive_at_peak()
        self.assertEqual((len(alive), len(alive[7].module)), (20000, 1000000))
        self.assertLess(tracemalloc.get_traced_memory()[1], 50_000_000)
        tracemalloc.stop()

    def test_a_page_that_is_its_own_child_ends(self):
        case = self.case("INSERT INTO modules WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 99999) SELECT n, 'm' FROM r")
        data = bytearray(case.trace.read_bytes())
        with contextlib.closing(sqlite3.connect(case.trace)) as database:
            (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'modules'").fetchone()
        begin = (root - 1) * 4096
        self.assertEqual(data[begin], 5)  # an interior page: all its children are to be the first one
        first = int.from_bytes(data[begin + 12 : begin + 14], "big")
        for cell in range(int.from_bytes(data[begin + 3 : begin + 5], "big")):
            at = begin + int.from_bytes(data[begin + 12 + 2 * cell : begin + 14 + 2 * cell], "big")
            data[at : at + 4] = data[begin + first : begin + first + 4]
        case.trace.write_bytes(data)
        self.assertEqual(len(case.alive_at_peak()), 2)  # as many rows as before

    def test_ctrl_c_ends_it(self):
        text = "x" * 60
        case = self.case("INSERT INTO modules WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 400000) "
                         f"SELECT n, '{text}' FROM r")  # fmt: skip
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with self.assertRaises(KeyboardInterrupt):
            case.alive_at_peak()

    def test_a_run_json_that_is_none(self):
        self.case()
        file = self.folder / "run/run.json"
        for text, says in (("[" * 100_000, "not a run of Peakbench"), ('{"title": "", "status": "", "cases": [{"id": "", "slug": "s", "status": "", "reason": "", '
                           '"device": "", "memory": {"at_peak": [1]}}]}', "not a run of Peakbench")):  # fmt: skip
            file.write_text(text)
            with self.assertRaisesRegex(ValueError, says):
                peakbench.load(self.folder / "run")
        file.unlink()
        os.mkfifo(file)
        with self.assertRaisesRegex(ValueError, "no regular file"):
            peakbench.load(self.folder / "run")
