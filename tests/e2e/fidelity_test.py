"""`peakbench fidelity`: records read, measured, added and shown; the worker is a script that gives the baseline 100 MiB."""
import json
import unittest

from installation import ProgramTest

MIB = 1 << 20
PAGE = "page.md"


def record(**changes):
    whole = {"schema": "peakbench.fidelity/1",
             "figure": {"metric": "peak_allocated", "value": 100, "unit": "MiB"},
             "source": {"name": "Lab", "url": "https://example.org/lab"},
             "card": "h100-80gb",
             "configuration": {"model": "tiny", "strategy": "baseline", "dtype": "fp32", "batch_size": 2},
             "versions": {"torch": "2.4.0"},
             "grade": "same_configuration"}
    return {**whole, **changes}


class Fidelity(ProgramTest):
    def write(self, name, text):
        text = text if isinstance(text, str) else json.dumps(text, indent=2)
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def records(self, name="fidelity.json"):
        return json.loads(self.read(name))["records"]

    def test_a_case_is_measured_and_added(self):
        done = self.peakbench("fidelity", "add", self.write("mine.json", record()), "--out", "measured")
        self.assertIn("100 MiB", done.stdout)
        self.assertIn("104,857,600", done.stdout)
        self.assertIn("Records: fidelity.json (1 in all)", done.stdout)
        [added] = self.records()
        self.assertEqual(added["emulated"]["bytes"], 100 * MIB)
        self.assertEqual(added["emulated"]["phase"], "optimizer_step")
        self.assertEqual({key: added[key] for key in record() if key != "schema"},
                         {key: value for key, value in record().items() if key != "schema"})
        case = self.run_json("measured")["cases"]
        self.assertEqual([one["id"] for one in case], ["tiny/baseline/emulated:h100-80gb/fp32/b2"])

    def test_the_same_figure_again_replaces_it_and_another_joins(self):
        self.peakbench("fidelity", "add", self.write("mine.json", record()), "--out", "one")
        changed = record(figure={"metric": "peak_allocated", "value": 110, "unit": "MiB"})
        other = record(configuration={**record()["configuration"], "strategy": "slim"})
        self.peakbench("fidelity", "add", self.write("mine.json", changed), self.write("other.json", other), "--out", "two")
        self.assertEqual([(one["figure"]["value"], one["emulated"]["bytes"]) for one in self.records()],
                         [(110, 100 * MIB), (100, 90 * MIB)])

    def test_the_page_says_what_differs_and_why(self):
        records = [record(),
                   record(figure={"metric": "peak_memory", "value": 0.1, "unit": "GiB", "rounded_to": 0.1}),
                   record(figure={"metric": "peak_active", "value": 90, "unit": "MiB"}, grade="same_law", cause="data",
                          explanation="the samples are shorter"),
                   record(figure={"metric": "peak_reserved", "value": 50, "unit": "MiB"}, configuration={"program": ["train.py", "--batch", "4"]},
                          emulated={"bytes": 60 * MIB, "phase": "backward", "verdict": "exact", "date": "2026-11-23"})]
        for at, one in enumerate(records):
            self.peakbench("fidelity", "add", self.write("mine.json", one), "--out", f"run{at}")
        left = {"schema": "peakbench.fidelity/1", "records": [],
                "not_rebuilt": [{"source": "Other", "figures": 3, "reason": "its data is private"}]}
        done = self.peakbench("fidelity", "table", "fidelity.json", self.write("left.json", left), "--out", PAGE)
        self.assertEqual(done.stdout, PAGE + "\n")
        page = self.read(PAGE)
        for line in ("All in all there are 4 figures from 1 sources; 1 of the peaks lie outside the optimizer step", "**Of 3 distinct figures of whole training steps",
                     "|  | all | 4 | 1 | 1 | 1 | 1 | 2 | +20.0 |",
                     "| data | 1 | +11.1 |", "| unknown | 1 | +20.0 |",
                     "(+11.1%, data): the samples are shorter. Alive at our peak: ",
                     "| h100-80gb | tiny / baseline / fp32 b2 | memory | 0.1 GiB | 104,857,600 | −2.34 (last digit) |",
                     "| h100-80gb | train.py --batch 4 | reserved | 50 MiB | 62,914,560 | **+20.0** | same configuration | backward |",
                     "(+20.0%, unknown): not explained.", "| Other | 3 | its data is private |"):
            self.assertIn(line, page)

    def test_graded_figures_of_a_suite(self):
        self.write("suite.toml", """
models = ["tiny"]
strategies = ["baseline", "slim"]
devices = ["emulated:h100-80gb"]
repetitions = 0
[[published]]
model = "tiny"
strategy = "slim"
device = "emulated:h100-80gb"
metric = "peak_allocated"
value = 99
unit = "MB"
source = "Them"
url = "https://example.org"
grade = "other_versions"
[[published]]
model = "tiny"
metric = "peak_memory"
value = 1
unit = "GB"
source = "not graded"
""")
        self.peakbench("run", "suite.toml", "--out", "out", "--no-report")
        table = json.loads(self.peakbench("fidelity", "table", "out", "--json").stdout)
        [one] = table["records"]
        self.assertEqual((one["source"]["name"], one["emulated"]["bytes"]), ("Them", 90 * MIB))
        self.assertIn("−4.67%", self.peakbench("fidelity", "table", "out").stdout)

    def test_a_program_is_what_emulate_wrote(self):
        mine = self.write("mine.json", record(configuration={"program": ["python3", "train.py"]}))
        self.fails("fidelity", "add", mine, says=["Lab: python3 train.py", "peakbench emulate --card h100-80gb --json took.json -- python3 train.py"])
        took = {"card": "h100-80gb", "exit_code": 0, "torch": {"version": "2.6.0"}, "verdict": {"kind": "lower bound"},
                "processes": [{"devices": [{"peak_allocated_bytes": 7, "peak_reserved_bytes": 9}]}]}
        self.peakbench("fidelity", "add", mine, "--emulated", self.write("took.json", took))
        emulated = self.records()[0]["emulated"]
        self.assertEqual((emulated["bytes"], emulated["verdict"], emulated["versions"]), (7, "lower bound", {"torch": "2.6.0"}))
        self.fails("fidelity", "add", mine, "--emulated", self.write("took.json", {**took, "exit_code": 137}),
                   says=["took.json: /exit_code: the program failed with 137"])

    def test_wrong_input_adds_nothing(self):
        good = self.write("good.json", record())
        for changes, says in (
                ({"card": "h100-80g"}, ["bad.json:13: ", "h100-80g", "h100-80gb"]),
                ({"configuration": {**record()["configuration"], "model": "tinny"}}, ["bad.json:13: ", "tinny", "tiny"]),
                ({"configuration": {**record()["configuration"], "dtype": "fp7"}}, ["bad.json:13: ", "fp7"]),
                ({"figure": {"metric": "peak_allocated", "value": 100}}, ["bad.json:3: /figure/unit: missing"]),
                ({"colour": "red"}, ["bad.json:", "/colour: unknown key"])):
            self.fails("fidelity", "add", good, self.write("bad.json", record(**changes)), "--out", "out", says=says)
        self.fails("fidelity", "add", "missing.json", says=["missing.json"])
        self.fails("fidelity", "table", good, says=["no record of good.json has a figure of an emulated card"])
        self.fails("fidelity", "add", good, "--to", self.write("broken.json", "{"), says=["broken.json: cut short"])
        self.assertEqual(self.read("broken.json"), "{")
        self.fails("fidelity", says=["fidelity needs a command: table or add"])
        self.assertFalse((self.folder / "fidelity.json").exists())
        self.assertFalse((self.folder / "out").exists())

    def test_a_case_that_does_not_end_ok_is_not_added(self):
        fails = record(configuration={**record()["configuration"], "model": "tiny,behaviour=exit"})
        done = self.peakbench("fidelity", "add", self.write("mine.json", fails), "--out", "out", "-q", exit_code=3)
        self.assertIn("Lab: tiny,behaviour=exit / baseline / fp32 b2: crashed: ", done.stderr)
        self.assertIn("its run is in out", done.stderr)
        self.assertFalse((self.folder / "fidelity.json").exists())


if __name__ == "__main__":
    unittest.main()
