"""Cases whose workers are forked from one that has the libraries loaded: the same records and files as those of workers started
afresh, one or several at a time, and whatever becomes of the server.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from given import PEAKBENCH
from records import without_volatile

# Two cards; one where the larger batch does not fit, so that a second worker looks for what it needs; settings of CUDA.
CASES = ["--model", "vit-b-16", "--device", "emulated:h100-80gb", "--device", "emulated:t4-16gb,memory=3GiB", "--batch", "1,16",
         "--strategy", "baseline", "--strategy", "fused-in-backward", "--strategy", "lora", "--cudnn", "off",
         "--allocator", "max_split_size_mb:64", "--no-report", "--no-ablation"]


def parents():
    """{id: (name, parent)} of every process."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)
        except OSError:
            continue
        found[int(pid)] = (name.split("(", 1)[1], int(rest.split()[1]))
    return found


def below(ancestor):
    """{id: name} of the process's descendants."""
    tree, found = parents(), {}
    for pid, (name, _) in tree.items():
        at = pid
        while at in tree and at != ancestor:
            at = tree[at][1]
        if at == ancestor and pid != ancestor:
            found[pid] = name
    return found


class ForkServerTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-emulated-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, out, *options, server="on"):
        command = [PEAKBENCH, "run", *CASES, "--out", self.folder / out, *options]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PEAKBENCH_FORK_SERVER": server})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, out):
        said, told = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, said + told)
        record = json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))
        return without_volatile(record), [row for row in said.splitlines() if row.startswith("[")], told

    def traces(self, out):
        """Every table of every trace, but for the addresses in the host's memory, which no two processes share."""
        found = {}
        for path in sorted((self.folder / out).rglob("trace.sqlite")):
            with contextlib.closing(sqlite3.connect(path)) as trace:
                host = {number for number, name in trace.execute("SELECT id, name FROM spaces") if name in ("cpu", "pinned")}
                for (table,) in trace.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    rows = trace.execute(f"SELECT * FROM {table}")
                    columns = [column[0] for column in rows.description]
                    rows = [dict(zip(columns, row)) for row in rows]
                    for row in rows:
                        if row.get("space") in host:
                            row.pop("address", None)
                    found[path.parent.name, table] = rows
        return found

    def wait_for(self, process, name):
        """The first descendant with this name."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            for pid, found in below(process.pid).items():
                if found == name:
                    return pid
            time.sleep(0.005)
        self.fail(f"no {name} came")

    def test_the_same_records_and_files_each_way(self):
        plain, rows, told = self.finish(self.start("plain", "--jobs", "1", server="off"), "plain")
        self.assertNotIn("warning", told)
        statuses = [case["status"] for case in plain["cases"]]
        self.assertEqual(len(statuses), 12)
        self.assertIn("out_of_memory", statuses)
        self.assertGreater(statuses.count("ok"), 8)
        for case in plain["cases"]:
            if case["status"] == "out_of_memory":
                self.assertGreater(case["out_of_memory"]["needed_bytes"], 3 << 30)
        traces = self.traces("plain")
        self.assertGreater(len(traces), 12 * 5)
        for jobs in ("1", "2", "5"):
            record, same_rows, told = self.finish(self.start(jobs, "--jobs", jobs), jobs)
            self.assertNotIn("warning", told)
            self.assertEqual(record, plain)
            self.assertEqual(same_rows, rows)
            different = [name for name, rows in self.traces(jobs).items() if rows != traces[name]]
            self.assertEqual(different, [])

    def test_a_server_that_is_killed_is_told_and_replaced(self):
        plain, rows, _ = self.finish(self.start("plain", "--jobs", "2"), "plain")
        process = self.start("killed", "--jobs", "2")
        self.wait_for(process, "peakbench-watch")
        server = self.wait_for(process, "peakbench-serve")
        os.kill(server, signal.SIGKILL)
        record, same_rows, told = self.finish(process, "killed")
        self.assertEqual(record, plain)
        self.assertEqual(same_rows, rows)
        self.assertEqual(told.count("the process that workers are forked from was ended by SIGKILL"), 1, told)

    def test_nothing_stays_when_the_program_is_killed(self):
        process = self.start("cut", "--jobs", "2")
        self.wait_for(process, "peakbench-watch")
        left = below(process.pid)
        self.assertIn("peakbench-serve", left.values())
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 10
        while any(pid in parents() for pid in left) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual([name for pid, name in left.items() if pid in parents()], [])

    def test_an_interrupt_ends_all_and_keeps_what_is_done(self):
        process = self.start("cut", "--jobs", "2")
        process.stdout.readline()
        left = below(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual([name for pid, name in left.items() if pid in parents()], [])
        record = json.loads((self.folder / "cut/run.json").read_text(encoding="utf-8"))
        self.assertGreater(len(record["cases"]), 0)
        whole, _, _ = self.finish(self.start("cut", "--jobs", "2", "--resume"), "cut")
        plain, _, _ = self.finish(self.start("plain", "--jobs", "1"), "plain")
        self.assertEqual(whole["cases"], plain["cases"])
