"""lab/fidelity.py: the page of a file of records and of a run, its grades and causes, and what is said of wrong input.

lab/fidelity.py tests/lab/records.json --out tests/lab/page.md writes the expected page anew.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import fidelity

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent.parent / "lab/fidelity.py"
GIB = 2**30
CASE = {"model": "vit-l-16", "strategy": "baseline", "dtype": "fp32", "batch_size": 8}


def record(published=10.5, ours=None, rounded_to=None, figure=None, source=None, **changes):
    """A record; `ours` in GiB."""
    emulated = None if ours is None else {"bytes": int(ours * GIB), "date": "2026-11-23"}
    return {"figure": {"metric": "peak_allocated", "value": published, "unit": "GiB", "rounded_to": rounded_to, **(figure or {})},
            "source": {"name": "Lab", **(source or {})}, "card": "a100-80gb", "configuration": CASE, "grade": "same_configuration",
            "emulated": emulated, **changes}


def run():
    """A run of two cases, with four published figures of them."""
    def case(strategy, status="ok", **options):
        memory = {"peak_allocated_bytes": 9 * GIB, "peak_reserved_bytes": 10 * GIB, "peak_phase": "backward",
                  "at_peak": {"activation": 5 * GIB, "optimizer_state": 3 * GIB, "buffer": GIB // 4}}
        return {"model": {"id": "vit-l-16", "options": {}}, "strategies": [{"id": strategy, "options": options}], "device": "emulated:a100-80gb",
                "dtype": "fp32", "batch_size": 8, "sequence_length": None, "status": status, "reason": "" if status == "ok" else "asked for 1 GiB",
                "memory": memory if status == "ok" else None}

    def figure(strategy, metric="peak_allocated", **changes):
        return {"model": "vit-l-16", "strategy": strategy, "dtype": "fp32", "batch_size": 8, "sequence_length": None, "metric": metric, "value": 10,
                "unit": "GiB", "source": "A suite", "url": "", "note": "", "device": "emulated:a100-80gb", "grade": "same_law", **changes}

    return {"created": "2026-11-23T10:00:00Z", "cases": [case("lora", rank=16), case("baseline", "out_of_memory")],
            "published": [figure("lora,rank=16"), figure("lora,rank=16", "peak_reserved"), figure("baseline"), figure("", dtype="bf16"),
                          figure("baseline", grade="")]}


class Pages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-lab-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, document):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    def call(self, *sources, code=0):
        page = self.folder / "page.md"
        done = subprocess.run([sys.executable, "-B", SCRIPT, *sources, "--out", page], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return page.read_text(encoding="utf-8") if code == 0 else done.stderr

    def page(self, *records):
        return self.call(self.write("records.json", {"schema": fidelity.SCHEMA, "records": records}))

    def test_the_page_of_records_is_as_expected(self):
        self.assertEqual(self.call(HERE / "records.json"), (HERE / "page.md").read_text(encoding="utf-8"))

    def test_the_graded_figures_of_a_run_are_those_of_its_cases(self):
        self.write("run/run.json", run())
        page = self.call(self.folder / "run")
        self.assertEqual(page, self.call(self.folder / "run/run.json"))
        for line in ("| a100-80gb | vit-l-16 / lora,rank=16 / fp32 b8 | allocated | 10 GiB | 9,663,676,416 | **−10.00** | same law | backward |",
                     "| a100-80gb | vit-l-16 / lora,rank=16 / fp32 b8 | reserved | 10 GiB | 10,737,418,240 | 0 | same law | backward |",
                     "- unknown: not explained.\n  - vit-l-16 / lora,rank=16 / fp32 b8, a100-80gb (−10.00%). Alive at our peak: activation 5.00 GiB, optimizer state 3.00 GiB.",
                     "- vit-l-16 / baseline / fp32 b8, a100-80gb (10 GiB): out_of_memory: asked for 1 GiB\n",
                     "- vit-l-16 /  / bf16 b8, a100-80gb (10 GiB): the run has no such case\n", "Ours were measured on 2026-11-23."):
            self.assertIn(line, page)

    def test_a_difference_has_a_cause_beyond_half_a_percent_and_the_last_digit(self):
        def cause(*figure, **changes):
            return fidelity.figure_of(record(*figure, **changes), "").named_cause

        self.assertEqual(cause(10, 10.04, 0.001), "", "0.4%")
        self.assertEqual(cause(10, 10.06, 0.001), "unknown")
        self.assertEqual(cause(10, 10.06, 0.2), "", "it would be printed as 10.0")
        self.assertEqual(cause(10.1, 10.04), "unknown", "printed as 10.0, not 10.1")
        self.assertEqual(cause(1.5, 1.54), "", "2.7%, and printed as 1.5")
        self.assertEqual(cause(10, 11, cause="versions", explanation="x"), "versions")
        self.assertEqual(cause(10, 15, grade="computed"), "")

    def test_a_figure_counts_once_and_a_computed_one_never(self):
        page = self.page(record(10, 10.02), record(10, 10.004, configuration={"program": ["train.py"]}), record(10, 15, grade="computed"),
                         record(10, 10, measures="operator"))  # fmt: skip
        self.assertIn("**Of 1 distinct figures", page)
        self.assertIn("The largest difference is +0.0400% (Lab: train.py)", page, "the program's, not the case's")
        self.assertIn("| training steps | same configuration | 1 | 0 | 1 | 1 | 0 | 0 | +0.0400 |\n| operators | same configuration | 1 |", page)
        self.assertIn("|  | all | 2 |", page)

    def test_the_other_sources_are_counted_apart_from_the_largest(self):
        most = [record(value, value, source={"name": "most"}) for value in (10, 11)]
        page = self.page(*most, record(12, 12.003, source={"name": "other"}))
        self.assertIn("2 of them come from one source (most; kinds of card: 1).\nOf the 1 from the other sources, 0 lie within 0.01%, 1 within 0.05%", page)
        self.assertNotIn("of them come from one source", self.page(*most))

    def test_rows_of_a_table_are_figures_of_their_own(self):
        url = "https://example.org/table.csv"

        def figures(*urls):
            page = self.page(*(record(10, 10, source={"url": one}) for one in urls))
            self.assertEqual(page.count(f"<{url}>"), 1)
            return page

        self.assertIn("there are 2 figures", figures(f"{url}#L2", f"{url}#L3"))
        self.assertIn(f"[10 GiB]({url}#L3)", figures(f"{url}#L2", f"{url}#L3"))
        self.assertIn("there are 1 figures", figures(f"{url}#L2", f"{url}#L2"))
        self.assertIn("there are 1 figures", figures(f"{url}#L2", url), "the second may be the first's row")

    def test_whole_cards_are_compared_with_the_median(self):
        def of(published, *ours):
            emulated = {"bytes": 1, "date": "2026-11-23", "versions": {"torch": "2.6.0"}, "peak_used_bytes": [one * 2**20 for one in ours]}
            return record(emulated=emulated, device_memory={"value": published, "unit": "MiB"})

        page = self.page(of(1500, 1000), of(2501, 2000), of(3000, 2600), of(4000, 2000, 3000))
        self.assertIn("| a100-80gb | 1 | 2.6.0 | 3 | 400 | 500 | 501 | 2 | −0.0400 | +3.33 |", page)
        self.assertIn("| a100-80gb | 2 | 2.6.0 | 1 | 1,500 | 1,500 | 1,500 | 1 |", page)

    def test_what_is_shown_is_no_markup(self):
        self.assertEqual(fidelity.shown("# a_b _c_ *d* <e> @f :tada: a::b x:\u202ey\nz"),
                         "\\# a_b \\_c\\_ \\*d\\* &lt;e&gt; &#64;f &#58;tada: a::b x:\ufffdy z")
        self.assertEqual(fidelity.web_address("javascript:alert(1)"), "")

    def test_wrong_input_is_refused_with_its_file_and_field(self):
        def refuses(document, says):
            page = self.write("page.md", "as before")
            self.assertIn(says, self.call(self.write("bad.json", document), code=2))
            self.assertEqual(page.read_text(), "as before")

        def refuses_record(says, **changes):
            refuses({"schema": fidelity.SCHEMA, "records": [record(), record(**changes)]}, f"bad.json: /records/1/{says}")

        refuses_record('figure/unit: expected bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB, got "Gb/s"', figure={"unit": "Gb/s"})
        refuses_record("figure/metric: expected peak_memory or ", figure={"metric": "throughput"})
        refuses_record("figure/value: expected a number above 0, got 0", figure={"value": 0})
        refuses_record('figure/rounded_to: 0.4 is coarser than the last digit of "10.5 GiB", which the source prints', rounded_to=0.4)
        refuses_record('figure/rounded_to: 2 is coarser than the last digit of "11 GB"', rounded_to=2, figure={"printed": "11 GB"})
        refuses_record("figure/printed: expected digits and a unit, like 24 GB", rounded_to=1, figure={"printed": "eleven"})
        refuses_record("source/name: expected a string that is not empty", source={"name": ""})
        refuses_record("card: expected a card of `peakbench list devices`, got \"a100-80g\"", card="a100-80g")
        refuses_record("configuration/batch_size: expected an integer above 0, got true", configuration={**CASE, "batch_size": True})
        refuses_record("configuration/batch: unknown field; known: batch_size,", configuration={**CASE, "batch": 8})
        refuses_record("configuration/streams: expected soon or late", configuration={"program": ["train.py"], "streams": "now"})
        refuses_record("grade: expected same_configuration or ", grade="good")
        refuses_record("explanation: missing", cause="data")
        refuses_record("measures: expected training_step or operator or collective", measures="kernel")
        refuses_record("steps: expected none", steps=[{"changed": "x", "arguments": ["y"]}])
        refuses_record("emulated/peak_used_bytes/1: expected an integer above 0, got 0", emulated={"bytes": 1, "date": "x", "peak_used_bytes": [2, 0]})
        refuses_record("emulated/date: missing", emulated={"bytes": 1})
        refuses({"schema": "peakbench.fidelity/2"}, 'bad.json: /schema: expected peakbench.fidelity/1, got "peakbench.fidelity/2"')
        refuses([], "bad.json: expected an object, got []")
        refuses("{", "bad.json: not JSON: ")
        refuses({"schema": fidelity.SCHEMA, "records": [record()]}, "has a figure of an emulated card")
        self.assertIn("missing.json: cannot be read: No such file", self.call(self.folder / "missing.json", code=2))
        self.write("run/run.json", {**run(), "published": []})
        self.assertIn("run.json: this run has no graded figure", self.call(self.folder / "run", code=2))
        self.write("run/run.json", {**run(), "cases": [{}]})
        self.assertIn("run.json: expected a run of this version of Peakbench", self.call(self.folder / "run", code=2))
