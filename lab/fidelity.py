#!/usr/bin/env python3
"""Writes docs/evidence/fidelity.md: published peaks of real cards next to those of emulated cards.

  lab/fidelity.py results/ibm lab/published/*.json --out docs/evidence/fidelity.md

A source is the folder of a run (or its run.json), whose graded figures are taken, or a JSON file of records (docs/evidence/fidelity_records.md).
The same sources give the same bytes. Exit codes: 0, whatever the differences; 2 unusable input, or nothing in it was measured.
"""
import argparse
import json
import math
import pathlib
import re
import sys
from dataclasses import dataclass, field, fields

CARDS = pathlib.Path(__file__).resolve().parent.parent / "emulator/cards"
SCHEMA = "peakbench.fidelity/1"
METRICS = ("peak_memory", "peak_allocated", "peak_active", "peak_reserved", "ncclAllGather", "ncclReduceScatter")
GRADES = ("same_configuration", "same_law", "other_versions", "computed")  # a computed figure is never counted
CAUSES = ("versions", "kernels", "workspaces", "data", "timing", "unknown")
MEASURES = ("training_step", "operator", "collective")
UNITS = {"bytes": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
CLOSE, NEAR, AGREE = 0.0001, 0.0005, 0.005  # beyond the last one a cause is named
MOST = 2**53


class Wrong(Exception):
    """One sentence: the file, the field, what is expected there."""


@dataclass
class Figure:
    """A published peak, and the emulated card's."""
    name: str  # of the publisher
    metric: str
    value: float
    unit: str
    device: str  # the card with its options
    configuration: str
    is_program: bool
    grade: str
    url: str = ""
    note: str = ""
    rounded_to: float | None = None
    printed: str = ""
    cause: str = ""
    explanation: str = ""
    measures: str = "training_step"
    device_memory: dict | None = None
    steps: list = field(default_factory=list)
    emulated: dict | None = None
    reason: str = "not measured yet"  # why `emulated` is missing

    @property
    def card(self):
        return self.device.partition(",")[0]

    @property
    def bytes(self):
        return bytes_of(self.value, self.unit)

    @property
    def difference(self):
        return self.emulated["bytes"] / self.bytes - 1

    @property
    def is_within_rounding(self):
        """Not further apart than half of the published figure's last digit."""
        step = self.rounded_to or last_digit(digits_of(self.value))
        return abs(self.emulated["bytes"] - self.bytes) <= bytes_of(step, self.unit) / 2

    @property
    def named_cause(self):
        """Empty where no cause is needed."""
        is_near = abs(self.difference) <= AGREE or self.is_within_rounding
        return "" if is_near or self.grade == "computed" else self.cause or "unknown"


# --- Reading ------------------------------------------------------------------------------------------


def kind(holds, expected):
    """-> what is wrong with a value: nothing, or what is expected in its place"""
    return lambda value: None if holds(value) else expected


def one_of(*names):
    return kind(lambda value: value in names, " or ".join(names))


text = kind(lambda value: isinstance(value, str), "a string")
words = kind(lambda value: isinstance(value, str) and value, "a string that is not empty")
count = kind(lambda value: type(value) is int and 0 < value <= MOST, "an integer above 0")
above_zero = kind(lambda value: type(value) in (int, float) and 0 < value <= MOST, "a number above 0")
unit = kind(lambda value: isinstance(value, str) and value.lower() in UNITS, "bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB")
versions = kind(lambda value: isinstance(value, dict) and not any(map(text, value.values())), "an object of strings")
card = kind(lambda value: isinstance(value, str) and (CARDS / f"{value.partition(',')[0]}.json").is_file(), "a card of `peakbench list devices`")

# Fields by name; a name with ? may be missing. What is allowed is a function, a list of one, or fields; `dict` is any object.
CASE = {"model": words, "strategy": text, "dtype": text, "batch_size": count, "sequence_length?": count}
PROGRAM = {"program": [words], "packages?": versions, "streams?": one_of("soon", "late")}
RECORD = {
    "schema?": one_of(SCHEMA), "reason?": text, "card": card, "configuration": dict, "versions?": versions, "grade": one_of(*GRADES),
    "figure": {"metric": one_of(*METRICS), "value": above_zero, "unit": unit, "rounded_to?": above_zero, "printed?": text},
    "source": {"name": words, "url?": text, "note?": text}, "cause?": one_of("", *CAUSES), "explanation?": text,
    "measures?": one_of(*MEASURES), "device_memory?": {"value": above_zero, "unit": unit},
    "steps?": [{"changed": words, "arguments": [words], "bytes?": count, "phase?": text}],
    "emulated?": {"bytes": count, "phase?": text, "at_peak?": text, "verdict?": text, "versions?": versions, "date": words, "peak_used_bytes?": [count]}}
FILE = {"schema": one_of(SCHEMA), "records?": [RECORD], "not_rebuilt?": [{"source": words, "url?": text, "figures?": count, "reason": words}]}


def check(value, allowed, where):
    """Raises Wrong unless the JSON value is what is allowed. `where`: the file and the field."""
    if isinstance(allowed, list):
        expected = None if isinstance(value, list) else "a list"
    elif isinstance(allowed, dict) or allowed is dict:
        expected = None if isinstance(value, dict) else "an object"
    else:
        expected = allowed(value)
    if expected:
        raise Wrong(f"{where.removesuffix(': ')}: expected {expected}, got {json.dumps(value)[:60]}")
    if isinstance(allowed, list):
        for index, item in enumerate(value):
            check(item, allowed[0], f"{where}/{index}")
    elif isinstance(allowed, dict):
        known = {name.removesuffix("?"): of_field for name, of_field in allowed.items()}
        for name in (name for name in value if name not in known):
            raise Wrong(f"{where}/{name}: unknown field; known: {', '.join(sorted(known))}")
        for name, of_field in known.items():
            if value.get(name) is not None:
                check(value[name], of_field, f"{where}/{name}")
            elif name in allowed:  # without its ?
                raise Wrong(f"{where}/{name}: missing")


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Wrong(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Wrong(f"{path}: not JSON: {error}") from error


def read_source(path):
    """-> its figures, and those of publishers that are left out"""
    if path.is_dir() or path.name == "run.json":
        return figures_of_run(path / "run.json" if path.is_dir() else path), []
    document = read_json(path)
    if isinstance(document, dict) and "figure" in document:
        document = {"schema": document.get("schema"), "records": [document]}
    check(document, FILE, f"{path}: ")
    return [figure_of(record, f"{path}: /records/{index}") for index, record in enumerate(document.get("records") or [])], document.get("not_rebuilt") or []


def figure_of(record, where):
    configuration = record["configuration"]
    is_program = "program" in configuration
    check(configuration, PROGRAM if is_program else CASE, f"{where}/configuration")
    if is_program:
        program, *arguments = configuration["program"] or [""]
        label = " ".join([program.rsplit("/", 1)[-1], *arguments])
        label += f" (streams={configuration['streams']})" if configuration.get("streams") else ""
    else:
        label = f"{configuration['model']} / {configuration['strategy']} / {configuration['dtype']} b{configuration['batch_size']}"
        label += f" s{configuration['sequence_length']}" if configuration.get("sequence_length") else ""
    check_rounding(record["figure"], f"{where}/figure")
    if record.get("steps") and not is_program:
        raise Wrong(f"{where}/steps: expected none, as the configuration is a case and not a program")
    if bool(record.get("cause")) != bool(record.get("explanation")):
        raise Wrong(f"{where}/{'explanation' if record.get('cause') else 'cause'}: missing; a cause needs an explanation, and an explanation its cause")
    name, *options = record["card"].split(",")
    known = {**record["figure"], **record["source"], **record, "configuration": label, "is_program": is_program, "device": ",".join([name, *sorted(options)])}
    return Figure(**{one.name: known[one.name] for one in fields(Figure) if known.get(one.name) is not None})


def check_rounding(figure, where):
    """A figure is not called coarser than its source prints it."""
    if figure.get("rounded_to") is None:
        return
    coarsest, printed = last_digit(digits_of(figure["value"])), f"{digits_of(figure['value'])} {figure['unit']}"
    if figure.get("printed"):
        printed = figure["printed"]
        digits, _, printed_unit = printed.partition(" ")
        if unit(printed_unit):
            raise Wrong(f"{where}/printed: expected digits and a unit, like 24 GB, got {json.dumps(printed)}")
        coarsest = 1.0996 * bytes_of(last_digit(digits), printed_unit) / bytes_of(1, figure["unit"])  # 2^40 to 10^12: some call GiB GB
    if figure["rounded_to"] > max(coarsest, figure["value"] * 2**-22) * (1 + 1e-9):  # or what single precision keeps of it
        raise Wrong(f'{where}/rounded_to: {figure["rounded_to"]} is coarser than the last digit of "{printed}", which the source prints')


def figures_of_run(path):
    run = read_json(path)
    try:
        records = [record_of_run(figure, run) for figure in run["published"] if figure.get("grade")]
    except (KeyError, TypeError, AttributeError) as error:
        raise Wrong(f"{path}: expected a run of this version of Peakbench; `published` or `cases` have another form: {error!r}") from error
    if not records:
        raise Wrong(f"{path}: this run has no graded figure; its suite's [[published]] need a `grade`")
    check(records, [RECORD], f"{path}: /graded")
    return [figure_of(record, f"{path}: /graded/{index}") for index, record in enumerate(records)]


def record_of_run(figure, run):
    """A graded figure with what its case took, as a record."""
    case = next((case for case in run["cases"] if is_about(figure, case)), None)
    memory = case and case["status"] == "ok" and case["memory"]
    record = {"figure": {name: figure.get(name) for name in ("metric", "value", "unit", "rounded_to")},
              "source": {"name": figure["source"], "url": figure["url"], "note": figure["note"]}, "card": figure["device"].removeprefix("emulated:"),
              "configuration": {**{name: figure[name] for name in ("model", "strategy", "dtype", "sequence_length")}, "batch_size": figure["batch_size"] or 1},
              **{name: figure.get(name) for name in ("grade", "cause", "explanation")}}
    if memory:
        took = memory["peak_reserved_bytes" if figure["metric"] == "peak_reserved" else "peak_allocated_bytes"]
        record["emulated"] = {"bytes": took, "phase": memory["peak_phase"], "at_peak": at_peak_text(memory), "date": run["created"][:10]}
    else:
        record["reason"] = f"{case['status']}: {case['reason']}" if case else "the run has no such case"
    return record


def is_about(figure, case):
    """What the figure does not name may be anything."""
    stack = "+".join(map(selection_text, case["strategies"]))
    asked = [(figure["strategy"], stack), *((figure[name], case[name]) for name in ("dtype", "batch_size", "sequence_length"))]
    return (case["device"] == figure["device"] and figure["model"] in (case["model"]["id"], selection_text(case["model"]))
            and all(wanted in ("", None, has) for wanted, has in asked))


def selection_text(selection):
    def value_text(value):
        if not isinstance(value, str):
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return value if value and not re.search('[,+" ]', value) else f'"{value}"'

    return selection["id"] + "".join(f",{name}={value_text(value)}" for name, value in sorted(selection["options"].items()))


def at_peak_text(memory):
    """What is a twentieth of the peak at least, largest first: "activation 12.10 GiB, ..."."""
    parts = sorted(((took, category) for category, took in memory["at_peak"].items()), reverse=True)
    return ", ".join(f"{spaced(category)} {took / 2**30:.2f} GiB" for took, category in parts if took * 20 >= memory["peak_allocated_bytes"])


# --- Figures as text ----------------------------------------------------------------------------------


def bytes_of(value, unit):
    return float(value) * UNITS[unit.lower()]


def digits_of(value):
    return repr(float(value)).removesuffix(".0")


def last_digit(digits):
    return 10.0 ** -len(digits.partition(".")[2])


def spaced(name):
    return name.replace("_", " ")


def grouped(number):
    return f"{number:,}".replace("-", "−")


def signed_percent(fraction):
    """Enough digits to distinguish 0.01% from nothing."""
    percent = abs(fraction * 100)
    decimals = 4 if percent < 0.1 else 2 if percent < 10 else 1
    return f"{'−' if fraction < 0 else '+'}{percent:.{decimals}f}" if percent else "0"


UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff"
                         "\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]")
# A mark is escaped where it could mean something, so that the file also reads well as it is.
MARKUP = re.compile(r"[<>&@]|:(?=//|[A-Za-z0-9_+-]+:)|[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=[0-9])|^[#+=-](?= |$)|^([#+=-])(?=\1)")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", ":": "&#58;"}


def shown(text):
    """One line of GitHub's Markdown, whatever the text holds."""
    line = UNPRINTABLE.sub("\ufffd", re.sub("[\n\t\r]", " ", text))
    return MARKUP.sub(lambda mark: ENTITIES.get(mark[0], "\\" + mark[0]), line)


def web_address(url):
    return url if re.fullmatch(r"https?://[A-Za-z0-9\-._~:/?#@!$&*+,;=%]*", url) else ""


def row_address(figure):
    """A link with a fragment (#L12) names the row of a page."""
    return web_address(figure.url) if "#" in figure.url else ""


def published_text(figure):
    if figure.printed:
        return shown(figure.printed)
    digits = grouped(int(figure.value)) if figure.unit == "bytes" else digits_of(figure.value)
    return f"{digits} {shown(figure.unit)}"


# --- Counting -----------------------------------------------------------------------------------------


def is_same_figure(one, other):
    if "#" in one.url and "#" in other.url and one.url != other.url:
        return False
    return all(getattr(one, name) == getattr(other, name) for name in ("name", "device", "metric", "measures", "bytes"))


def distinct_figures(figures):
    """-> one published figure each: the ways in which it was rebuilt, its publisher's own program before a case of ours"""
    distinct = []
    for figure in figures:
        if not figure.emulated or figure.grade == "computed":
            continue
        same = next((ways for ways in distinct if is_same_figure(ways[0], figure)), None)
        if same is None:
            distinct.append([figure])
        else:
            same.append(figure)
    return [sorted(ways, key=lambda figure: not figure.is_program) for ways in distinct]


def within(figures, fraction):
    return sum(abs(figure.difference) <= fraction for figure in figures)


def furthest(figures):
    return max(figures, key=lambda figure: abs(figure.difference))


def by_key(items, key):
    groups = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))


# --- The page -----------------------------------------------------------------------------------------


def summary(figures):
    """What can be quoted: whole training steps of the same configuration."""
    if not figures:
        return ""
    sources = by_key(figures, lambda figure: figure.name)
    largest = furthest(figures)
    cause = "within its last digit" if abs(largest.difference) > AGREE and largest.is_within_rounding else largest.named_cause
    most = max(sources, key=lambda source: len(sources[source]))
    others = [figure for figure in figures if figure.name != most]
    page = f"""\
**Of {len(figures):,} distinct figures of whole training steps on real cards with the same configuration, {within(figures, CLOSE):,} lie within 0.01%, {within(figures, NEAR):,} within 0.05%, {within(figures, AGREE):,} within 0.5%.**
They come from {len(sources):,} sources and {len({figure.card for figure in figures}):,} kinds of card.
The largest difference is {signed_percent(largest.difference)}% ({shown(f"{largest.name}: {largest.configuration}")}{cause and f": {shown(cause)}"}).
"""
    if others:
        page += f"""\
{len(sources[most]):,} of them come from one source ({shown(most)}; kinds of card: {len({figure.card for figure in sources[most]}):,}).
Of the {len(others):,} from the other sources, {within(others, CLOSE):,} lie within 0.01%, {within(others, NEAR):,} within 0.05%, {within(others, AGREE):,} within 0.5%.
"""
    return page + "\n"


def grade_row(measures, grade, figures):
    rounded = sum(abs(figure.difference) > AGREE and figure.is_within_rounding for figure in figures)
    agree = within(figures, AGREE)
    largest = signed_percent(furthest(figures).difference) if figures else ""
    counts = (len(figures), within(figures, CLOSE), within(figures, NEAR), agree, rounded, len(figures) - agree - rounded)
    return f"| {measures} | {grade} | {' | '.join(map(grouped, counts))} | {largest} |\n"


def head(counted):
    dates = sorted(shown(figure.emulated["date"]) for figure in counted)
    outside = sum(figure.emulated.get("phase") not in (None, "", "optimizer_step") for figure in counted)
    groups = [(measures, grade, [figure for figure in counted if (figure.measures, figure.grade) == (measures, grade)])
              for measures in MEASURES for grade in GRADES]
    grades = [grade_row(spaced(measures) + "s", spaced(grade), figures) for measures, grade, figures in groups if figures]
    causes = [(cause, [figure for figure in counted if figure.named_cause == cause]) for cause in CAUSES]
    causes = [f"| {cause} | {len(figures):,} | {signed_percent(furthest(figures).difference)} |\n" for cause, figures in causes if figures]
    return f"""\
# Fidelity: emulated cards against real ones

How close are the figures of an emulated card to a real card's?

```sh
lab/fidelity.py results/ibm lab/published/*.json --out docs/evidence/fidelity.md
```

Each row below compares a peak that others published for a real card with ours: the same configuration on the emulated card.
Differences come from cuDNN's own workspaces, other versions of libraries, and sizes that depend on data.

{summary([figure for figure in counted if (figure.measures, figure.grade) == ("training_step", "same_configuration")])}\
In total there are {len(counted):,} figures from {len({figure.name for figure in counted}):,} sources.
{outside:,} of the peaks lie outside the optimizer step, where a formula of parameters, gradients and state is not enough.
Ours were measured on {" to ".join(dict.fromkeys(dates[:1] + dates[-1:]))}.

Each figure is counted once.
If a figure was rebuilt as its publisher's own program and as a case of ours, both are in one row, and the program counts.
Figures of one source, card and kind with the same value count as one, unless their links name different rows.

| of | grade | figures | within 0.01% | within 0.05% | within 0.5% | further apart, within the published last digit | differ | largest difference, % |
|:--|:--|--:|--:|--:|--:|--:|--:|--:|
{"".join(grades)}{grade_row("", "all", counted)}
- *same configuration*: everything that affects memory is known and the same, except versions of libraries.
- *same law*: something is unknown or different, such as the lengths of samples, but memory grows in the same way.
- *other versions*: kernels or libraries are known to differ from the publisher's.
- Figures that a publisher computed without measuring are listed separately, and never counted.

{listed("Why figures differ by more than 0.5% and more than their last digit:", causes, "| cause | figures | largest difference, % |", "|:--|--:|--:|")}\
Our figure is of the published kind, a maximum of PyTorch's allocator:

| kind | what the publisher measured | compared with |
|:--|:--|:--|
| allocated, reserved | allocated or reserved memory | the same |
| active | allocated memory, and freed blocks that still wait for another stream | the same for a program, allocated memory for a case |
| memory | the publisher does not say which kind | allocated memory |
| ncclAllGather, ncclReduceScatter | no peak: the bytes of all such calls of all ranks | the same |

If a figure of ours is not exact, its [verdict](../how-to/emulate.md#the-verdict) follows it.
Most of these are a *lower bound*: a workspace that cuDNN chooses is counted as 0.

"""


def listed(title, lines, *table_head):
    """A list or a table under its title; nothing where it is empty."""
    return "\n".join([*([title, ""] if title else []), *table_head, "".join(lines), ""]) if lines else ""


def figure_row(ways):
    figure, *others = ways
    emulated, address, verdict = figure.emulated, row_address(figure), figure.emulated.get("verdict") or ""
    published = f"[{published_text(figure)}]({address})" if address else published_text(figure)
    difference = signed_percent(figure.difference)
    if figure.named_cause:
        difference = f"**{difference}**"
    elif abs(figure.difference) > AGREE:
        difference += " (last digit)"
    bound = f" ({shown(verdict)})" if verdict and not verdict.startswith("exact") else ""
    cells = [[shown(figure.card)],
             [shown(way.configuration) for way in ways],
             [spaced(figure.metric.removeprefix("peak_"))],
             [published],
             [grouped(emulated["bytes"]) + bound, *(grouped(other.emulated["bytes"]) for other in others)],
             [difference, *(signed_percent(other.difference) for other in others)],
             [spaced(way.grade) for way in ways],
             [phase_of(way.emulated) for way in ways]]
    return "| " + " | ".join("<br>".join(cell) for cell in cells) + " |\n"


def phase_of(peak):
    return shown(spaced(peak.get("phase") or ""))


def why_they_differ(figures):
    """Each explanation once, and below it the figures that it is of."""
    groups = {}
    for figure in figures:
        groups.setdefault((figure.named_cause, figure.explanation.removesuffix(".")), []).append(figure)
    for (cause, explanation), same in groups.items():
        yield f"- {shown(cause)}: {shown(explanation) or 'not explained'}.\n"
        for figure in same:
            alive = f" Alive at our peak: {shown(figure.emulated['at_peak'])}." if figure.emulated.get("at_peak") else ""
            yield f"  - {shown(figure.configuration)}, {shown(figure.card)} ({signed_percent(figure.difference)}%).{alive}\n"


def steps_to_case(ways):
    """From the publisher's program to the case of ours."""
    program = ways[0]
    peaks = [("the publisher's program", program.emulated), *((shown(step["changed"]), step) for step in program.steps),
             *(("the case of ours", way.emulated) for way in ways if not way.is_program)]
    rows, before = [], None
    for changed, peak in peaks:
        change = "" if before is None else ("+" if peak["bytes"] > before else "") + grouped(peak["bytes"] - before)
        rows.append(f"| {changed} | {grouped(peak['bytes'])} | {change} | {phase_of(peak)} |\n")
        before = peak["bytes"]
    title = f"{shown(program.configuration)}, {shown(program.card)}:"
    return listed(title, rows, "| changed | peak, bytes | against the row above | peak in |", "|:--|--:|--:|:--|")


def computed_line(figure):
    note = f": {shown(figure.note)}" if figure.note else ""
    return (f"- {shown(figure.configuration)}, {shown(figure.card)}: {published_text(figure)}, ours {grouped(figure.emulated['bytes'])} bytes "
            f"({signed_percent(figure.difference)}%){note}\n")


def not_measured_line(figure):
    published = published_text(figure) + (" " if figure.printed else "")
    return f"- {shown(figure.configuration)}, {shown(figure.card)} ({published}): {shown(figure.reason)}\n"


def source_section(name, figures, distinct):
    urls = dict.fromkeys(web_address(figure.url.partition("#")[0]) for figure in figures)
    measured = [figure for figure in figures if figure.emulated]
    ways = [one for one in distinct if one[0].steps and all(step.get("bytes") for step in one[0].steps)]
    return f"## {name}\n\n" + "".join([
        listed("Where they are published:", [f"- <{url}>\n" for url in urls if url]),
        listed("", [*map(figure_row, distinct)], "| card | configuration | kind | published | emulated, bytes | difference, % | grade | peak in |",
               "|:--|:--|:--|--:|--:|--:|:--|:--|"),
        listed("Why they differ:", [*why_they_differ(figure for figure in measured if figure.named_cause)]),
        "From the publisher's program to our case, one more change in each row:\n\n" if ways else "", *map(steps_to_case, ways),
        listed("Computed by the publisher, not measured:", [computed_line(figure) for figure in measured if figure.grade == "computed"]),
        listed("Not measured:", [not_measured_line(figure) for figure in figures if not figure.emulated])])


def whole_card_row(group, figures):
    name, cards, torch = group
    runs = sorted((published - ours, ours, published) for published, ours in
                  ((bytes_of(**figure.device_memory), sum(figure.emulated["peak_used_bytes"]) / cards) for figure in figures))
    beside = [run[0] for run in runs]
    median = beside[(len(runs) - 1) // 2]
    apart = [(ours + median) / published - 1 for _, ours, published in runs]
    mebibytes = [grouped(int(math.copysign(math.floor(abs(one) / 2**20 + 0.5), one))) for one in (beside[0], median, beside[-1])]
    near = sum(abs(one - median) <= 2 * 2**20 for one in beside)
    return f"| {name} | {cards} | {torch} | {len(runs):,} | {' | '.join(mebibytes)} | {near:,} | {signed_percent(min(apart))} | {signed_percent(max(apart))} |\n"


def whole_cards(figures):
    chosen = [figure for figure in figures if figure.device_memory and figure.emulated and figure.emulated.get("peak_used_bytes")]
    if not chosen:
        return ""

    def group_of(figure):
        torch = (figure.emulated.get("versions") or {}).get("torch", "")
        return shown(figure.card), len(figure.emulated["peak_used_bytes"]), shown(torch)

    return f"""\
## Reserved memory, and what nvidia-smi shows

Some publishers also read the whole card's memory, as nvidia-smi shows it.
It consists of what CUDA gave to PyTorch, the CUDA context and, with several cards, NCCL's buffers.
The emulated card has only the first of these.
The table shows the rest in MiB, by card, by the number of cards of a run, and by the release of PyTorch that ours ran with:

| card | cards of a run | our PyTorch | runs | least | median | most | within 2 MiB of the median | ours and the median against the published, lowest, % | highest, % |
|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{"".join(whole_card_row(group, of_group) for group, of_group in by_key(chosen, group_of).items())}
How the allocator keeps and reuses its segments depends on PyTorch's release, on its settings, and on how full the card is.
*Reserved* is therefore exact for one release with one set of settings, and what nvidia-smi shows is an estimate.
Allocated bytes are in the tables above.

"""


FOOT = """\
## Adding a figure

To add a measurement of your own, send a pull request with a [record](fidelity_records.md) of it.
`lab/published/page.py` writes this page.
`ci/fidelity` measures a GPU that you have: cases, programs, operators and the CUDA context (`peakbench doctor --context`).
It also writes records of its cases.
The results of an H200 are in [real_card.md](real_card.md).
"""


def page(figures, left_out):
    distinct = distinct_figures(figures)
    sources = {}  # in the order of the sources
    for figure in figures:
        sources.setdefault(shown(figure.name), []).append(figure)
    left = [f"| {shown(one['source'])} | {grouped(one.get('figures') or 1)} | {shown(one['reason'])} |\n" for one in left_out]
    sections = [source_section(name, of_source, [ways for ways in distinct if shown(ways[0].name) == name]) for name, of_source in sources.items()]
    return (head([ways[0] for ways in distinct]) + "".join(sections) + whole_cards(figures)
            + listed("## Figures that are left out", left, "| publisher | figures | why |", "|:--|--:|:--|") + FOOT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="a folder of a run, or a file of records")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the page, in Markdown")
    arguments = parser.parse_args()
    try:
        figures, left_out = [], []
        for source in arguments.sources:
            for to, more in zip((figures, left_out), read_source(pathlib.Path(source))):
                to.extend(more)
        if not any(figure.emulated for figure in figures):
            raise Wrong(f"no record of {', '.join(arguments.sources)} has a figure of an emulated card")
        arguments.out.write_text(page(figures, left_out), encoding="utf-8")
    except (Wrong, OSError) as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 2
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
