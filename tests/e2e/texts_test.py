"""Files that nobody wrote in good faith: each ends in a clear error or is shown as the text it is."""
import json
import os
import re
import struct
import subprocess
import xml.etree.ElementTree

from given import FAKE_PLUGINS
from installation import ProgramTest, install

ONE = ("--model", "tiny", "--strategy", "baseline")
LEAST = 'models = ["tiny"]\nstrategies = ["baseline"]\n'
DEEP = 200_000
# A window's title, the clipboard, colours, 8-bit controls, turned writing, characters without width, what XML lacks.
EVIL = "a\x1b]0;title\x07\x1b]52;c;ZQ==\x07\x1b[31m\x9b2J\b\r\n\u202eb\u2066\u200b\u2060\ufeff\ufffe\uffff"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufffe\uffff]")


def plugin(manifest, stamp):
    """A shared library with the section of a manifest and nothing else; manifest: JSON or its text."""
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    content = f'{{"stamp": {json.dumps(stamp)}, "manifest": {text}}}'.encode()
    names = b"\0.shstrtab\0.peakbench\0"
    header = struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, 0, 0, 64 + len(names) + len(content),
                         0, 64, 0, 0, 64, 3, 1)
    section = "<IIQQQQIIQQ"
    return (header + names + content + bytes(64) + struct.pack(section, 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
            + struct.pack(section, 11, 1, 0, 0, 64 + len(names), len(content), 0, 0, 1, 0))


def strategy(**changes):
    return {"id": "odd", "title": "Odd", "summary": "Is odd.", "source_url": "", "options": [], "order": 90, "slots": [],
            "wrappers": [], "capabilities": [], "needs": [], "conflicts": [], "promise": "bit_identical",
            "tolerance": None, **changes}


def option(**changes):
    return {"name": "size", "type": "number", "default": 1, "unit": "", "summary": "How large.", **changes}


class TextsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        section = (FAKE_PLUGINS / "fake_models.so").read_bytes()
        self.stamp = json.JSONDecoder().raw_decode(section[section.index(b'"stamp": {') + 9:].decode("latin-1"))[0]

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path

    def suite_fails(self, text, *says):
        self.write("bad.toml", text)
        return self.fails("run", "bad.toml", "--dry-run", says=["bad.toml", *says])


class Numbers(TextsTest):
    def test_in_a_suite(self):
        for literal in ("inf", "-inf", "nan", "1e309"):
            self.suite_fails(f"{LEAST}steps = {literal}\n", "bad.toml:3")
            self.suite_fails(f'{LEAST}[[published]]\nmodel = "tiny"\nmetric = "peak_memory"\nvalue = {literal}\n'
                             'unit = "GiB"\nsource = "x"\n', "bad.toml:6")
            self.suite_fails(f'{LEAST}[gate]\nallocated = {literal}\n', "bad.toml:4")
            self.suite_fails(f"{LEAST}[device_options]\ngarbage_collection_threshold = {literal}\n", "bad.toml:4")
        for key, value, expected in (("steps", 10**18, "1000000 or less"), ("repetitions", 10**18, "1000 or less"),
                                     ("threads", 10**9, "4096 or less"), ("batch_sizes", "[9223372036854775807]", "1000000000 or less"),
                                     ("warmup", 1.0, "an integer"), ("seed", 10**30, "64 bits")):
            self.suite_fails(f"{LEAST}{key} = {value}\n", key if value != 10**30 else "", expected)

    def test_in_a_gate_policy(self):
        self.peakbench("run", *ONE, "--out", "out")
        for value in ("inf%", "nan%", "1e999%", "1e300%", "-0.1%", "1e400"):
            done = self.fails("gate", "out", "out", "--allocated", value, says=["--allocated"])
            self.assertIn("expected", done.stderr)

    def test_in_a_run_file(self):
        self.peakbench("run", *ONE, "--out", "out")
        run = json.loads((self.folder / "out/run.json").read_text())
        case = run["cases"][0]
        text = json.dumps(run)
        figure = f'"samples_per_second": {case["throughput"]["samples_per_second"]}'
        self.assertIn(figure, text)
        for bad, says in (('"inf"', "finite"), ('"nan"', "finite"), ("1e999", "fits 64 bits, got 1e999"), ("NaN", "not JSON"),
                          ("-1", "finite number from 0"), ("1e300", "finite number from 0"), ("true", "finite")):
            self.write("out/run.json", text.replace(figure, f'"samples_per_second": {bad}'))
            for command in (("report", "out"), ("compare", "out", "out"), ("gate", "out", "out"),
                            ("history", "add", "out", "--history", "h.sqlite"), ("run", *ONE, "--out", "out", "--resume")):
                self.fails(*command, says=["run.json", "/cases/0/throughput/samples_per_second", says])
        self.write("out/run.json", text.replace(figure, '"samples_per_second": "inf"'))
        self.fails("report", "out", says=[f'(case {case["id"]})'])
        figure = f'"peak_allocated_bytes": {case["memory"]["peak_allocated_bytes"]}'
        for bad in ("9223372036854775808", "1e20", "-1", "1.5", '"1"', "9223372036854775807"):
            self.write("out/run.json", text.replace(figure, f'"peak_allocated_bytes": {bad}', 1))
            self.fails("report", "out", says=["/cases/0/memory/peak_allocated_bytes: expected an integer"])


class Plugins(TextsTest):
    """One that is broken is named with its reason; the others are there."""

    def with_plugin(self, manifest):
        self.write("more/odd.so", plugin(manifest, self.stamp))
        listed = self.peakbench("list", "strategies", "--plugins", "more")
        self.assertIn("baseline", listed.stdout)
        models = self.peakbench("list", "models", "--json", "--plugins", "more")
        self.assertEqual([one["id"] for one in json.loads(models.stdout)], ["tiny", "tiny-lm"])
        self.peakbench("run", *ONE, "--plugins", "more", "--dry-run")
        return listed

    def test_a_good_one(self):
        self.assertIn("Odd", self.with_plugin({"kind": "strategy", "entries": [strategy()]}).stdout)

    def test_what_is_none(self):
        whole = json.dumps({"kind": "strategy", "entries": [strategy(options=[option(minimum=0, maximum=7)])]})
        self.assertIn("odd", self.with_plugin(whole).stdout)
        for bad, says in (("1e999", "fits 64 bits, got 1e999"), ("-1e999", "fits 64 bits"), ("Infinity", "not JSON"),
                          ('"inf"', "finite"), ('"nan"', "finite"), ("NaN", "not JSON"), ("[" * DEEP + "]" * DEEP, "levels"),
                          ('{"a":' * (DEEP // 8) + "1" + "}" * (DEEP // 8), "levels"), ('{"a":' * DEEP + "1" + "}" * DEEP, "claims")):
            for place in ('"maximum": 7', '"default": 1', '"order": 90', '"title": "Odd"'):
                self.assertIn(place, whole)
                key = place.split(":", maxsplit=1)[0]
                if key == '"title"' and says == "finite":
                    continue  # a word like others
                listed = self.with_plugin(whole.replace(place, f"{key}: {bad}"))
                self.assertNotIn("odd", listed.stdout, (bad[:20], place))
                self.assertIn("more/odd.so", listed.stderr)
                self.assertIn("expected" if says == "finite" else says, listed.stderr)
        done = self.peakbench("doctor", "--json", exit_code=0)
        self.assertNotIn("odd", done.stdout)

    def test_bounds_at_the_end_of_the_numbers(self):
        for low, high in ((-1e308, 1e308), (-9223372036854775808, 9223372036854775807), (0, 18446744073709551615)):
            for kind in ("integer", "number"):
                listed = self.with_plugin({"kind": "strategy", "entries": [
                    strategy(options=[option(type=kind, minimum=low, maximum=high)])]})
                self.assertIn("odd", listed.stdout)
                self.fails("run", "--model", "tiny", "--strategy", "odd,size=1e999", "--plugins", "more", "--dry-run",
                           says=["size=1e999", "expected"])

    def test_not_a_file(self):
        (self.folder / "more").mkdir()
        os.mkfifo(self.folder / "more/pipe.so")
        listed = self.peakbench("list", "strategies", "--plugins", "more")
        self.assertIn("pipe.so: not a regular file", listed.stderr)


class Depth(TextsTest):
    def test_of_a_suite(self):
        parts = ".".join(["a"] * DEEP)
        for text, says in ((f"{LEAST}{parts} = 1\n", "bad.toml:3: a key of more than 32 parts"),
                           (f"{LEAST}[{parts}]\n", "bad.toml:3: a key of more than 32 parts"),
                           (f"{LEAST}[[{parts}]]\n", "bad.toml:3"),
                           (f"{LEAST}x = {{ {parts} = 1 }}\n", "bad.toml:3"),
                           (f'{LEAST}x = """a"""", {parts} = 1\n', "bad.toml:3"),
                           (f"{LEAST}x = {'[' * DEEP}{']' * DEEP}\n", "bad.toml:3"),
                           (f"{LEAST}x = {'{a = ' * DEEP}1{'}' * DEEP}\n", "bad.toml:3")):
            self.suite_fails(text, says)

    def test_of_a_run_file(self):
        self.peakbench("run", *ONE, "--out", "out")
        text = json.dumps(json.loads((self.folder / "out/run.json").read_text()))
        for deep in ("[" * DEEP + "]" * DEEP, '{"a": ' * DEEP + "1" + "}" * DEEP, "[" * DEEP):
            self.write("out/run.json", text.replace('"command":', f'"more": {deep}, "command":', 1))
            self.fails("report", "out", says=["run.json", "more than 100 levels", "line 1"])
            self.fails("history", "add", "out", "--history", "h.sqlite", says=["more than 100 levels"])

    def test_of_a_line_of_a_history(self):
        self.write("h.jsonl", '{"history_line": 1, "run": ' + "[" * DEEP + "]" * DEEP + "}\n")
        self.fails("history", "add", "h.jsonl", "--history", "h.sqlite", says=["h.jsonl:1", "levels"])

    def test_of_a_template(self):
        self.peakbench("run", *ONE, "--out", "out", "--no-report")
        signs = "{{#calc}}" + "-" * DEEP + "1{{/calc}}"
        brackets = "{{#calc}}" + "(" * DEEP + "1" + ")" * DEEP + "{{/calc}}"
        for text, says in (("{{#title}}" * DEEP + "{{/title}}" * DEEP, "sections in sections"), (signs, "fewer"),
                           (brackets, "fewer"), ("{{" + "a." * DEEP + "}}", "unknown field"),
                           ("{{" + "a" * DEEP + "}}", "no field"), ("{{#groups}}" * 3 + "{{/groups}}" * 3, "inside itself"),
                           ("{{titel}}\n" * DEEP, "unknown field")):
            self.write("looks/html/index.html.mustache", text)
            done = self.peakbench("report", "out", "--templates", "looks", exit_code=2)
            self.assertIn(says, done.stderr)
            self.assertLess(len(done.stderr), 6000)

    def test_of_templates_in_templates(self):
        self.peakbench("run", *ONE, "--out", "out", "--no-report")
        self.write("looks/html/index.html.mustache", "{{> x0}}")
        for i in range(60):
            self.write(f"looks/html/x{i}.mustache", f"{{{{> x{i + 1}}}}}" * 2)
        self.write("looks/html/x60.mustache", "")
        self.fails("report", "out", "--templates", "looks", says=["too many templates"])
        self.write("looks/html/x30.mustache", "")
        self.fails("report", "out", "--templates", "looks", says=["too many templates"])


class NoFiles(TextsTest):
    """What would be waited for, or never ends."""

    def test_pipes_and_devices(self):
        os.mkfifo(self.folder / "pipe")
        self.peakbench("run", *ONE, "--out", "out", "--no-report")
        os.mkfifo(self.folder / "lines.jsonl")
        (self.folder / "looks/html").mkdir(parents=True)
        os.mkfifo(self.folder / "looks/html/index.html.mustache")
        for command in (("run", "pipe"), ("run", "/dev/zero"), ("run", "/dev/stdin"), ("report", "pipe"),
                        ("report", "/dev/zero"), ("compare", "out", "pipe"),
                        ("run", *ONE, "--device", "emulated:./pipe"), ("emulate", "--card", "./pipe", "--", "true"),
                        ("history", "add", "lines.jsonl", "--history", "h.sqlite"),
                        ("history", "add", "pipe", "--history", "h.sqlite"), ("report", "out", "--templates", "looks")):
            self.fails(*command, says=["expected a regular file"])

    def test_files_without_end(self):
        with open(self.folder / "large", "wb") as file:
            file.truncate(2 << 30)
        self.fails("run", "large", says=["large: has more than 16777216 bytes"])
        self.fails("report", "large", says=["large: has more than 1073741824 bytes"])
        self.fails("run", *ONE, "--device", "emulated:./large", says=["large: has more than 16777216 bytes"])

    def test_names_that_no_file_can_have(self):
        long = "x" * 300
        self.fails("report", long, says=[long])
        self.fails("report", f"{long}/{long}", says=[long])
        self.fails("run", long, says=[f"{long}: cannot be read: File name too long"])
        self.fails("list", "models", "--plugins", long, says=[f"{long}: the plugin folder cannot be read: File name too long"])
        self.peakbench("run", *ONE, "--out", "out", "--no-report")
        self.fails("report", "out", "--templates", long, says=["no such folder"])

    def test_a_process_substitution_says_what_to_do(self):
        done = subprocess.run(["bash", "-c", f"'{self.program}' run <(echo) --dry-run"], capture_output=True, text=True,
                              timeout=10, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("write the content to one", done.stderr)


class Terminal(TextsTest):
    def assert_safe(self, done):
        for text in (done.stdout, done.stderr):
            self.assertIsNone(UNSAFE.search(text), repr(text[:600]))

    def raw(self, *arguments, exit_code=0, environment=None):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL, env={**self.environment(), **(environment or {})})
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, exit_code, done.stderr[:2000])
        self.assert_safe(done)
        return done

    def test_plugins(self):
        entry = strategy(title=EVIL, summary=EVIL, options=[option(summary=EVIL, unit=EVIL, type="string", default=EVIL)])
        self.write("more/odd.so", plugin({"kind": "strategy", "entries": [entry]}, self.stamp))
        self.write(f"more/{EVIL.replace(chr(0), '')}.so", b"none")
        done = self.raw("list", "strategies", "--plugins", "more")
        self.assertNotIn("\n\\u202e", done.stdout, "a line of its own")
        self.assertIn("\ufffd", done.stdout)
        self.assertIn("a plugin is left out", done.stderr)
        (own,) = [one for one in json.loads(self.raw("list", "strategies", "--json", "--plugins", "more").stdout)
                  if one["id"] == "odd"]
        self.assertEqual(own["title"], EVIL, "machines get what is there")
        value = "\x1b[2J\u202e"
        self.raw("run", "--model", "tiny", "--strategy", f"odd,size={value}", "--plugins", "more", "--dry-run")
        self.raw("run", "--model", "tiny", "--strategy", f"odd,size={value}", "--plugins", "more", "--out", "out")
        self.raw("run", "--model", f"tin{value}", "--strategy", "odd", exit_code=2)

    def test_doctor(self):
        broken = self.folder / "broken"
        install(broken)
        (broken / "bin/peakbench-worker").write_text("#!/bin/sh\nprintf '\\033]0;title\\007\\302\\2332J' >&2\nexit 127\n")
        (broken / f"lib/peakbench/plugins/{EVIL}.so").write_text("none")
        self.program = str(broken / "bin/peakbench")
        self.assertIn("PROBLEM", self.raw("doctor", exit_code=2).stdout)
        self.raw("doctor", "--json", exit_code=2)

    def hostile_run(self):
        self.peakbench("run", *ONE, "--strategy", "slim", "--out", "out", "--no-report")
        run = json.loads((self.folder / "out/run.json").read_text())
        run["title"] = run["suite"] = EVIL
        run["environment"] = {**run["environment"], EVIL: EVIL}
        run["published"] = [{"model": "tiny", "metric": "peak_memory", "value": 1, "unit": "GiB", "source": EVIL, "note": EVIL}]
        for case in run["cases"]:
            case["id"] = EVIL + case["id"]
            case["model"]["id"] += EVIL
            case["memory"]["at_peak"] = {EVIL: case["memory"]["peak_allocated_bytes"]}
            case["memory"]["phases"][EVIL] = {"peak_allocated_bytes": 1, "peak_requested_bytes": 1}
        bad = json.loads(json.dumps(run["cases"][1]))
        bad.update(id=bad["id"] + "2", status="crashed", reason=EVIL, memory=None, throughput=None)
        run["cases"].append(bad)
        self.write("out/run.json", json.dumps(run))
        for case in run["cases"][:2]:
            case["memory"]["peak_allocated_bytes"] += 1
        (self.folder / "new").mkdir(exist_ok=True)
        self.write("new/run.json", json.dumps(run))

    def test_run_files(self):
        self.hostile_run()
        self.raw("report", "out")
        self.raw("compare", "out", "new")
        self.raw("compare", "out", "new", "--json")
        self.raw("gate", "out", "new", exit_code=4)
        self.raw("history", "add", "out", "--branch", EVIL, "--note", EVIL, "--history", "h.sqlite")
        self.raw("history", "add", "new", "--branch", EVIL, "--note", EVIL, "--history", "h.sqlite")
        for command in (("list",), ("show", "1"), ("trend", ""), ("trend", "slim"), ("check",)):
            self.raw("history", *command, "--history", "h.sqlite")
        self.raw("history", "export", "--history", "h.sqlite")
        self.write("bad/run.json", '{"schema_version": "\\u001b[31m\\u202e"}')
        self.raw("report", "bad", exit_code=2)
        self.raw("report", EVIL, exit_code=2)
        self.raw("list", "devices", environment={"PEAKBENCH_EMULATOR_DIR": EVIL})
        self.raw("run", *ONE, "--device", "emulated:h100-80gb", exit_code=2, environment={"PEAKBENCH_EMULATOR_DIR": EVIL})

    def test_a_message_cannot_pass_for_one_of_ours(self):
        done = self.raw("report", "x\npeakbench: all is well", exit_code=2)
        self.assertNotIn("\npeakbench: all", done.stderr)
        done = self.raw("run", "--model", "m" * 100_000, "--strategy", "baseline", exit_code=2)
        self.assertLess(len(done.stderr), 5000)

    def test_xml(self):
        self.hostile_run()
        self.raw("report", "out")
        self.raw("gate", "out", "new", "--junit", "gate.xml", exit_code=4)
        self.raw("history", "add", "out", "--branch", EVIL, "--history", "h.sqlite")
        self.raw("history", "add", "new", "--branch", EVIL, "--history", "h.sqlite")
        self.raw("publish", "--history", "h.sqlite", "--branch", EVIL, "--out", "site")
        drawings = [path for path in self.folder.rglob("*.svg")]
        self.assertTrue(drawings)
        for path in (self.folder / "gate.xml", *drawings):
            xml.etree.ElementTree.parse(path)
        inside = 0
        for path in self.folder.rglob("*.html"):
            page = path.read_text(encoding="utf-8")
            self.assertNotIn("\ufffe", page)
            for drawing in re.findall(r"<svg.*?</svg>", page, re.S):
                xml.etree.ElementTree.fromstring(drawing)
                inside += 1
        self.assertGreater(inside, 0)
