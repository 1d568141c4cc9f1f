"""Programs in a suite: run as `peakbench trace` runs one, each its own case of one run, which every command over runs takes."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from given import ORACLE as PYTHON, PEAKBENCH

CARD = "emulated:h100-80gb"
PATIENCE_S = 120

TRAIN = """
import os, sys, torch
model = torch.nn.Linear(256, WIDTH).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(int(sys.argv[1]), 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print([sys.argv[1:], os.environ["MODE"], os.path.basename(os.getcwd()), torch.cuda.max_memory_allocated()])
"""
FAILS = """
import sys, torch
x = torch.ones(1000, device="cuda")
if sys.argv[1] == "memory":
    y = torch.empty(100 << 30, dtype=torch.uint8, device="cuda")
print("the last line")
sys.exit(3)
"""
# The second one waits for a file, and so is there to be killed.
WAITS = """
import os, time, torch
x = torch.ones(int(os.environ["COUNT"]), device="cuda")
open(os.environ["COUNT"] + ".began", "w").write(str(os.getpid()))
while os.environ["COUNT"] == "2048" and not os.path.exists("go"):
    time.sleep(0.05)
"""
# Both read a count that nobody knows; the second allocates by it.
COUNTS = """
import sys, torch
count = int((torch.randn(1 << 20, device="cuda") > 0).sum())
rows = count if sys.argv[1] == "other" else max(min(count, 8), 8)
kept = torch.zeros(rows, 1 << 10, device="cuda")
"""
STRANGE = "two words; $(touch pwned) '\" {}"


def suite(*programs):
    return f'title = "Mine"\ndevices = ["{CARD}"]\n' + "\n".join(programs)


def program(name, command, more=""):
    return f"[[programs]]\nname = {json.dumps(name)}\ncommand = {json.dumps([PYTHON, *command])}\n{more}\n"


class SuitePrograms(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        scripts = cls.folder / "scripts"
        scripts.mkdir()
        (scripts / "train.py").write_text(TRAIN.replace("WIDTH", "512"), encoding="utf-8")
        (cls.folder / "fails.py").write_text(FAILS, encoding="utf-8")
        (cls.folder / "plain.py").write_text("print('no torch here')", encoding="utf-8")
        axes = f"[programs.axes]\nbatch = [4, 64]\nnote = [{json.dumps(STRANGE)}]\n"
        cls.suite = suite(
            program("train", ["train.py", "{batch}", "{note}", "{{}}"], 'folder = "scripts"\nenvironment = {MODE = "b{batch}"}\n' + axes),
            program("fails", ["fails.py", "{why}"], '[programs.axes]\nwhy = ["memory", "code"]\n'),
            program("plain", ["plain.py"]),
            program("slow", ["-c", "import time; print('waiting', flush=True); time.sleep(60)"], "timeout_s = 2"),
        )
        (cls.folder / "mine.toml").write_text(cls.suite, encoding="utf-8")
        cls.done = cls.peakbench("run", "mine.toml", "--out", "base")

    @classmethod
    def peakbench(cls, *words, code=0, **environment):
        done = subprocess.run([PEAKBENCH, *words], cwd=cls.folder, capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **environment})  # fmt: skip
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    @classmethod
    def run_of(cls, out):
        return json.loads((cls.folder / out / "run.json").read_text(encoding="utf-8"))

    def cases(self, out="base"):
        return {case["id"]: case for case in self.run_of(out)["cases"]}

    def trained(self, batch, out="base"):
        return next(case for name, case in self.cases(out).items() if name.startswith(f"program/train,batch={batch},"))

    def test_programs_are_tried_with_other_values(self):
        (self.folder / "counts.py").write_text(COUNTS, encoding="utf-8")
        text = suite(program("counts", ["counts.py", "{rows}"], '[programs.axes]\nrows = ["same", "other"]\n'))
        (self.folder / "counts.toml").write_text(text, encoding="utf-8")
        self.peakbench("run", "counts.toml", "--out", "counts", "--second-guess", "2")
        same, other = (self.cases("counts")[f"program/counts,rows={rows}/{CARD}"]["emulation"]["verdict"] for rows in ("same", "other"))
        self.assertEqual((same["kind"], same["second_guess"]["runs"], same["second_guess"]["same"]), ("exact if", 3, True))
        self.assertEqual(same["conditions"], ["what it reads is not known, and its peaks are the same with other values (3 runs)"])
        self.assertEqual(other["kind"], "unreliable")
        self.assertGreater(len(set(other["second_guess"]["peak_bytes"])), 1)
        self.assertEqual(self.run_of("counts")["settings"]["second_guesses"], 2)
        self.peakbench("run", "counts.toml", "--out", "alone")
        self.assertEqual({case["emulation"]["verdict"]["kind"] for case in self.cases("alone").values()}, {"unreliable"})
        done = self.peakbench("run", "--model", "gpt2", "--second-guess", "2", "--out", "none", code=2)
        self.assertIn("--second-guess runs programs again, and no case of this run is a program", done.stderr)
        done = self.peakbench("fit", "--card", "h100-80gb", "--second-guess", "2", "--out", "fit", "--no-report", "--json", "--", PYTHON, "counts.py", "same")
        verdict = json.loads(done.stdout)["cells"][0]["verdict"]
        self.assertEqual((verdict["kind"], verdict["second_guess"]["same"]), ("exact if", True))

    def test_a_case_is_what_trace_makes_of_it(self):
        for batch in (4, 64):
            case = self.trained(batch)
            log = (self.folder / "base/cases" / case["slug"] / "worker.log").read_text(encoding="utf-8")
            arguments, mode, folder, peak = eval(log.splitlines()[-1])  # noqa: S307 - what the script printed
            self.assertEqual((arguments, mode, folder), ([str(batch), STRANGE, "{}"], f"b{batch}", "scripts"))
            self.assertEqual((case["kind"], case["status"], case["emulation"]["verdict"]["kind"]), ("program", "ok", "exact"))
            self.assertEqual(case["memory"]["peak_allocated_bytes"], peak)
            self.assertEqual(sum(case["memory"]["at_peak"].values()), peak)
            self.assertEqual(case["memory"]["at_peak"]["parameter"], 4 * (256 * 512 + 512))
            self.assertTrue((self.folder / "base" / case["ranks"][0]["trace"]).is_file())
            self.assertEqual(case["settings"]["command"][1:], ["train.py", *arguments])
        self.assertEqual([str(path) for path in self.folder.rglob("pwned")], [])
        self.assertEqual(list(self.folder.glob("base/cases/*/journals.tmp")), [])

    def test_a_failure_is_a_case_with_its_last_lines(self):
        cases = self.cases()
        memory = cases[f"program/fails,why=memory/{CARD}"]
        self.assertEqual(memory["status"], "out_of_memory")
        self.assertIn("100.000 GiB more were asked for by", memory["reason"])
        self.assertEqual(memory["out_of_memory"]["requested_bytes"], 100 << 30)
        code = cases[f"program/fails,why=code/{CARD}"]
        self.assertEqual((code["status"], code["reason"]), ("crashed", "the program ended with exit code 3 [worker.log: the last line]"))
        plain = cases[f"program/plain/{CARD}"]
        self.assertEqual(plain["status"], "unsupported")
        self.assertIn("did not import PyTorch", plain["reason"])
        self.assertIn("no torch here", plain["reason"])
        slow = cases[f"program/slow/{CARD}"]
        self.assertEqual((slow["status"], slow["reason"]), ("timeout", "stopped after 2 s (timeout_s, or --timeout) [worker.log: waiting]"))

    def test_they_are_one_table(self):
        self.assertEqual(self.done.stdout.count("peak allocated  "), 1, self.done.stdout)
        self.assertIn(f"Programs  {CARD}\n", self.done.stdout)
        page = (self.folder / "base/report/report.md").read_text(encoding="utf-8")
        self.assertEqual(page.count("| | Program | Peak allocated, GiB |"), 1)
        self.peakbench("export", "base", self.trained(4)["id"], "--out", "snapshot.pickle")
        self.peakbench("history", "add", "base", "--history", "history.sqlite")
        self.assertIn("batch=64", self.peakbench("history", "trend", "--history", "history.sqlite").stdout)

    def test_a_dry_run_shows_the_commands(self):
        shown = self.peakbench("run", "mine.toml", "--dry-run").stdout
        self.assertIn("cd scripts && MODE=b4 ", shown)
        self.assertTrue(shown.endswith("6 cases, 0 of them will not run.\n"), shown)
        planned = json.loads(self.peakbench("run", "mine.toml", "--dry-run", "--json", "--device", "emulated:t4-16gb").stdout)["cases"]
        self.assertEqual({case["device"] for case in planned}, {"emulated:t4-16gb"})
        self.assertEqual(planned[0]["program"]["command"][2:], ["4", STRANGE, "{}"])

    def test_what_changed_is_measured_again_and_gated(self):
        for name in ("scripts", "base"):
            shutil.copytree(self.folder / name, self.folder / "other" / name)
        for name in ("mine.toml", "fails.py", "plain.py"):
            shutil.copy(self.folder / name, self.folder / "other" / name)
        (self.folder / "other/scripts/train.py").write_text(TRAIN.replace("WIDTH", "513"), encoding="utf-8")
        done = self.peakbench("run", "other/mine.toml", "--out", "other/base", "--resume", "--no-report")
        self.assertIn("2 cases are measured again: train.py has changed", done.stderr)
        self.assertIn("4 cases are kept, 2 to run", done.stderr)
        gate = self.peakbench("gate", "base", "other/base", "--json", code=4)
        found = json.loads(gate.stdout)["gate"]
        self.assertEqual({finding["case"].split(",")[1] for finding in found["findings"]}, {"batch=4", "batch=64"})
        self.peakbench("gate", "base", "other/base", "--requested", "1MiB", "--allocated", "1MiB", "--reserved", "1GiB")
        text = (self.folder / "other/mine.toml").read_text(encoding="utf-8").replace('"{{}}"', '"more"')
        (self.folder / "other/mine.toml").write_text(text, encoding="utf-8")
        refused = self.peakbench("run", "other/mine.toml", "--out", "other/base", "--resume", code=2)
        self.assertIn("has the command [", refused.stderr)

    def test_a_killed_run_goes_on(self):
        folder = self.folder / "killed"
        folder.mkdir()
        (folder / "waits.py").write_text(WAITS, encoding="utf-8")
        text = suite(program("waits", ["waits.py"], 'environment = {COUNT = "{count}"}\n[programs.axes]\ncount = [1024, 2048]\n'))
        (folder / "suite.toml").write_text(text, encoding="utf-8")
        run = subprocess.Popen([PEAKBENCH, "run", "killed/suite.toml", "--out", "killed/out", "--jobs", "1", "-q"], cwd=self.folder)
        self.wait_for(lambda: (folder / "2048.began").exists() and (folder / "2048.began").read_text(encoding="utf-8"))
        pid = int((folder / "2048.began").read_text(encoding="utf-8"))
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists())
        self.assertEqual([case["status"] for case in self.run_of("killed/out")["cases"]], ["ok"])
        (folder / "go").touch()
        done = self.peakbench("run", "killed/suite.toml", "--out", "killed/out", "--resume", CUBLAS_WORKSPACE_CONFIG=":16:8")
        self.assertIn(" kept, 1 to run", done.stderr)
        peaks = [case["memory"]["peak_allocated_bytes"] for case in self.run_of("killed/out")["cases"]]
        self.assertEqual(peaks, [4096, 8192])
        # What the shell set, and may change figures.
        inherited = [case["settings"].get("inherited") for case in self.run_of("killed/out")["cases"]]
        self.assertEqual(inherited, [None, {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}])
        self.assertEqual(list(folder.glob("out/cases/*/journals.tmp")), [])

    def wait_for(self, what):
        until = time.monotonic() + PATIENCE_S
        while not what():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)

    def test_torchruns_side_by_side_meet_at_ports_of_their_own(self):
        (self.folder / "ranks.py").write_text(
            'import os, sys, torch\nimport torch.distributed as dist\ndist.init_process_group("nccl")\n'
            'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))\nx = torch.zeros(int(sys.argv[1]), 1024, device="cuda")\n'
            "dist.all_reduce(x)\ndist.destroy_process_group()\n", encoding="utf-8")  # fmt: skip
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
        text = suite(program("ranks", [*launcher, "ranks.py", "{width}"], "[programs.axes]\nwidth = [512, 1024]\n"))
        (self.folder / "ranks.toml").write_text(text.replace(CARD, f"{CARD},count=2"), encoding="utf-8")
        self.peakbench("run", "ranks.toml", "--jobs", "2", "--out", "ranks", "--no-report")
        self.assertEqual([case["status"] for case in self.cases("ranks").values()], ["ok", "ok"])
        # One that names a port has it; where that is taken, the reason says so.
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            (self.folder / "port.toml").write_text(suite(program("port", [*launcher, "--master-port", port, "ranks.py", "8"])).replace(
                CARD, f"{CARD},count=2"), encoding="utf-8")  # fmt: skip
            self.peakbench("run", "port.toml", "--out", "port", "--no-report", code=3)
        (case,) = self.cases("port").values()
        self.assertIn("the port at which its processes meet was taken (address already in use)", case["reason"])

    def test_others_are_told_that_it_is_a_program(self):
        name = self.trained(4)["id"]
        self.assertIn("run it without --executor slurm", self.peakbench("run", "mine.toml", "--executor", "slurm", code=2).stderr)
        if shutil.which("gdb"):
            self.assertIn("is a program, which has no worker to debug", self.peakbench("debug", "mine.toml", name, code=2).stderr)

    def test_emulates_json_is_gated(self):
        script = "import torch; x = torch.ones(1 << 20, device='cuda'); print(torch.cuda.max_memory_allocated())"
        (self.folder / "small.py").write_text(script, encoding="utf-8")
        done = self.peakbench("emulate", "--details", "--card", "h100-80gb", "--json", "took.json", "--", PYTHON, "small.py")
        took = json.loads((self.folder / "took.json").read_text(encoding="utf-8"))
        device = took["processes"][0]["devices"][0]
        self.assertEqual(device["peak_allocated_bytes"], int(done.stdout))

        def gate(change, code, name="new.json"):
            new = json.loads(json.dumps(took))
            change(new)
            (self.folder / name).write_text(json.dumps(new), encoding="utf-8")
            return self.peakbench("gate", "took.json", name, "--json", code=code).stdout

        same = json.loads(gate(lambda new: None, 0))
        (case,) = same["cases"]
        self.assertEqual(case["id"], f"program/small.py/{CARD}")
        figures = [(one["where"], one["figure"], one["new_bytes"]) for one in case["memory"]["figures"]]
        self.assertEqual(figures, [("peak", "allocated", int(done.stdout)), ("peak", "reserved", device["peak_reserved_bytes"])])
        categories = {one["category"]: one["new_bytes"] for one in case["memory"]["categories"]}
        self.assertEqual(sum(categories.values()), int(done.stdout))
        self.assertEqual(case["figures"]["new"], "exact")
        self.assertIn("Requested bytes and phases are not in these files.", same["notes"][0])

        def set_device(key, value):
            return lambda new: new["processes"][0]["devices"][0].update({key: value})

        worse = json.loads(gate(set_device("peak_allocated_bytes", int(done.stdout) + 512), 4))
        self.assertIn("peak allocated +512 bytes (4,194,304 -> 4,194,816 bytes)", worse["gate"]["findings"][0]["sentence"])
        self.assertIn("does not say what fills the peak", worse["gate"]["findings"][0]["details"][-1])
        self.assertIn("NEW has no memory figures of it", gate(set_device("peak_allocated_bytes", None), 2))
        bound = gate(lambda new: new["verdict"].update(kind="lower bound", reasons=["something"]), 4)
        self.assertIn("NEW's figures are a lower bound (something)", bound)
        # As uncertain as BASE is no regression, and is told all the same.
        (self.folder / "took.json").write_text((self.folder / "new.json").read_text(encoding="utf-8"), encoding="utf-8")
        text = " ".join(self.peakbench("gate", "took.json", "new.json").stdout.split())
        self.assertIn("NEW's figures are a lower bound (something): what they do not show is not compared.", text)
        self.assertIn("Gate: passed", text)
        failed = gate(lambda new: new.update(exit_code=1), 5)
        self.assertIn("the program ended with exit code 1", failed)
        (self.folder / "broken.json").write_text(json.dumps({**took, "verdict": {"kind": "sure"}}), encoding="utf-8")
        self.assertIn("broken.json: /verdict/kind", self.peakbench("gate", "took.json", "broken.json", code=2).stderr)
