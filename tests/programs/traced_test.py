"""Short trainings with the libraries that people use (traced/*.py), each run once by `peakbench trace` on an emulated card: its peak is the one
that the program itself prints at its end, the categories sum to it, phases and shares are those that such a training has, and none is blamed for anything.
Exit code 77 without the libraries: `ci/oracle --nightly` installs them, PEAKBENCH_ORACLE names the oracle's Python.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import pytest

from given import ORACLE as PYTHON, PEAKBENCH, UPDATE

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/how-to/programs.md"
BEGIN, END = "<!-- made by tests/programs/traced_test.py --update -->\n", "<!-- until here -->\n"
ENVIRONMENT = pathlib.Path(PYTHON).parents[1]
FOLDERS = [ENVIRONMENT / "programs/site-packages", ENVIRONMENT / "compilers", ENVIRONMENT / "apart"]
pytestmark = pytest.mark.skipif(not (FOLDERS[0] / "trl").is_dir(), reason="no libraries; ci/oracle --nightly installs them beside the oracle")
TRAINING = {"build", "forward", "backward", "optimizer_step"}


@dataclasses.dataclass
class Program:
    command: str
    libraries: str  # whose versions the table names
    phases: set = dataclasses.field(default_factory=set)  # besides a training's
    ranks: int = 1
    kept: float = 0.01  # of the peak, at most: what no cause is known of
    temporary: float = 0.4  # of the peak, at most


PROGRAMS = (
    Program("trainer.py bert fp32 evaluate", "transformers accelerate", {"evaluation"}),
    Program("trainer.py gpt2 bf16 accumulate", "transformers accelerate"),
    Program("trainer.py llama fp16 checkpointing", "transformers accelerate"),
    Program("trainer.py t5 fp32 evaluate", "transformers accelerate", {"evaluation", "generation"}),
    Program("trainer.py llama bf16 lora", "transformers peft"),
    Program("vision.py resnet", "torchvision", {"evaluation"}),
    Program("vision.py detector", "torchvision", {"evaluation"}),
    Program("vision.py timm", "timm", {"evaluation"}),
    Program("lightning_fit.py", "lightning", {"evaluation"}),
    Program("trl_train.py sft", "trl transformers"),
    Program("trl_train.py dpo", "trl transformers", {"evaluation"}),
    Program("trl_train.py grpo", "trl transformers", {"evaluation", "generation"}),
    Program("diffusers_unet.py", "diffusers accelerate"),
    Program("torchao_optimizer.py", "torchao", temporary=0.5),  # the update unpacks its state
    Program("ranks.py ddp", "torch", ranks=2, kept=0.15),  # the buckets of gradients
    Program("ranks.py fsdp2", "torch", ranks=2),
    Program("ranks.py pipeline", "torch", {"evaluation"}, ranks=2),  # stages ask each other for shapes
)


def traced(program, folder):
    """What became of it: its case, the peaks that it printed itself (by rank), and the seconds it took."""
    path = os.pathsep.join(map(str, FOLDERS))
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    script, *arguments = program.command.split()
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(program.ranks)] if program.ranks > 1 else []
    began = time.monotonic()
    done = subprocess.run([PEAKBENCH, "trace", "--card", f"h100-80gb,count={program.ranks}", "--out", "run", "--", PYTHON, *launcher,
                           HERE / "traced" / script, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    (case,) = json.loads((pathlib.Path(folder) / "run/run.json").read_text(encoding="utf-8"))["cases"]
    return case, sorted(int(peak) for peak in re.findall(r"^peak.* (\d+)$", done.stdout, re.MULTILINE)), seconds


def versions(program):
    code = "import importlib.metadata, sys; print(' '.join(f'{name} {importlib.metadata.version(name)}' for name in sys.argv[1:]))"
    done = subprocess.run([PYTHON, "-c", code, *program.libraries.split()], env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, FOLDERS))},
                          capture_output=True, text=True, check=True)  # fmt: skip
    return re.sub(r" (?=[a-z])", ", ", done.stdout.strip())


def row(program, case, printed, seconds):
    memory = case["memory"]
    peak = memory["peak_allocated_bytes"]
    shares = [f"{100 * memory['at_peak'].get(category, 0) / peak:.1f}" for category in ("temporary", "kept")]
    equal = "yes" if sorted(rank["memory"]["peak_allocated_bytes"] for rank in case["ranks"]) == printed else "no"
    return f"| `{program.command}` | {versions(program)} | {peak:,} | {equal} | {memory['peak_phase'].replace('_', ' ')} | {' | '.join(shares)} | {seconds:.0f} |\n"


def write_table(rows):
    """Into docs/how-to/programs.md, with today's date."""
    lines = [f"Traced on an emulated H100 on {datetime.date.today():%d %B %Y}; seconds with PyTorch's start, the libraries' and the report.\n", "\n",
             "| program | versions | peak, bytes | equals the program's own `max_memory_allocated()` | in | temporary, % | kept, % | s |\n",
             "|:--|:--|--:|:--|:--|--:|--:|--:|\n", *rows]  # fmt: skip
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "".join(lines) + END + rest.split(END)[1], encoding="utf-8")


class Traced(unittest.TestCase):
    def test_programs(self):
        rows = []
        for program in PROGRAMS:
            with self.subTest(program.command), tempfile.TemporaryDirectory() as folder:
                case, printed, seconds = traced(program, folder)
                rows.append(row(program, case, printed, seconds))
                memory = case["memory"]
                peak = memory["peak_allocated_bytes"]
                self.assertEqual(case["status"], "ok")
                self.assertEqual(len(printed), program.ranks)
                self.assertEqual(sorted(rank["memory"]["peak_allocated_bytes"] for rank in case["ranks"]), printed)
                for rank in case["ranks"]:
                    self.assertEqual(sum(rank["memory"]["at_peak"].values()), rank["memory"]["peak_allocated_bytes"])
                self.assertGreaterEqual(set(memory["phases"]), TRAINING | program.phases)
                self.assertEqual({"evaluation", "generation"} & set(memory["phases"]), program.phases & {"evaluation", "generation"})
                self.assertLessEqual(memory["at_peak"].get("kept", 0), program.kept * peak)
                self.assertLessEqual(memory["at_peak"].get("temporary", 0), program.temporary * peak)
                self.assertGreater(memory["at_peak"]["parameter"], 0)
                report = (pathlib.Path(folder) / "run/report/report.md").read_text(encoding="utf-8")
                self.assertRegex(report.split("**What holds the memory")[1], r"^[^\n]*\n\n- The peak is ")
        if UPDATE:
            write_table(rows)
