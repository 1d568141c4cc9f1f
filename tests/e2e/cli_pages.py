"""docs/reference/cli: a page for each command, whose first part is what `peakbench COMMAND --help` prints.

usage: cli_pages.py PEAKBENCH [--write]    without --write: exit code 1 if a page differs from the help texts

Only the lines between the markers BEGIN and END are generated. --write keeps the rest of a page and makes missing pages.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "docs/reference/cli"
BEGIN = "<!-- BEGIN: tests/e2e/cli_pages.py writes this part from `{} --help` -->"
END = "<!-- END -->"
TEXT_COLUMN = 30  # where HelpFormatter begins the text of an entry
OF_EVERY_COMMAND = ("--help", "--help-all")
NOTE = re.compile(r" (Excludes|Needs):((?: (?:--)?[a-z][\w-]*)+)| \(Env:(\w+)\)| (REQUIRED)| (\.\.\.)")
RANGE = re.compile(r":(?:INT|FLOAT) in \[(\d+) - (\d+)\]|:FILE\b")
CHOICES = re.compile(r":\{([^}]*)\}")
CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
# Options, variables and identifiers, which are code in Markdown.
WORD = re.compile(r"(?<![\w`./-])(--(?:[a-z][\w-]*|(?![\w-]))|@\w[\w.]*\w|\$?[\w.:/]*_[\w.:]*\w(?:\([^()\s]*\))?|\$[A-Z]+)")
PAGE = re.compile(r"docs/([\w/-]+\.md)")
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`-])")


class Help:
    """What `--help` prints, in parts: `sections` are lists of (name, text), `footer` of (is code, text)."""

    def __init__(self, text):
        lines = text.splitlines()
        usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
        self.description = " ".join(lines[:usage])
        self.usage = [lines[usage].removeprefix("Usage: ")]
        self.sections, self.footer = {}, []
        at = usage + 1
        while at < len(lines) and lines[at].strip():
            self.usage.append(lines[at].strip())
            at += 1
        while at < len(lines):
            if not lines[at].strip():
                at += 1
                continue
            if not lines[at].endswith(":") or lines[at].startswith("Example"):
                break
            at = self.read_section(lines, at)
        self.read_footer(lines[at:])

    def read_section(self, lines, at):
        entries = self.sections.setdefault(lines[at].removesuffix(":"), [])
        at += 1
        while at < len(lines) and lines[at].startswith("  "):
            line = lines[at]
            if not line[:TEXT_COLUMN].strip():
                entries[-1][1] = f"{entries[-1][1]} {line.strip()}".strip()
            elif line[TEXT_COLUMN - 2 : TEXT_COLUMN] == "  " and line[TEXT_COLUMN:]:
                entries.append([line[:TEXT_COLUMN].strip(), line[TEXT_COLUMN:].strip()])
            else:
                entries.append([line.strip(), ""])
            at += 1
        return at

    def read_footer(self, lines):
        begins = True
        for line in lines:
            is_code = line.startswith("  ")
            begins = begins or line.startswith(("Exit code", "Example"))
            if not line.strip():
                begins = True
            elif self.footer and not begins and self.footer[-1][0] == is_code:
                self.footer[-1][1] += "\n" + line if is_code else " " + line
            else:
                self.footer.append([is_code, line])
            begins = not line.strip() or line.startswith("Example")


def ask(program, *words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True, timeout=60)
    return Help(done.stdout)


def outside_code(text, change):
    """The text, changed where it is not code."""
    parts, at = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, change(text[at:])])


def prose(text):
    text = outside_code(text, lambda part: WORD.sub(r"`\1`", part))
    return outside_code(text, lambda part: PAGE.sub(lambda page: f"[{page[0]}]({os.path.relpath(REPOSITORY / page[0], FOLDER)})", part))


def notes_of(head, text):
    """-> (the head without what CLI11 adds to it, that as sentences)"""
    notes = []
    limits = RANGE.search(head)
    if limits and limits[1]:
        notes.append(f"From {limits[1]} to {limits[2]}.")
    choices = CHOICES.search(head)
    head = RANGE.sub("", head)
    if choices:
        head = CHOICES.sub("", head)
        names = choices[1].split(",")
        if not all(re.search(rf"\b{re.escape(name)}\b", text + head) for name in names):
            notes.append("One of " + ", ".join(f"`{name}`" for name in names) + ".")
    for kind, options, variable, required, many in NOTE.findall(head):
        if options:
            listed = " and ".join(f"`{one if one.startswith('--') else one.upper()}`" for one in options.split())
            notes.append(f"Not together with {listed}." if kind == "Excludes" else f"Only with {listed}.")
        if variable:
            notes.append(f"Variable: `{variable}`.")
        if required:
            notes.append("Required.")
        if many and " " not in RANGE.sub("", NOTE.sub("", head)).partition(" ")[2]:
            notes.append("Can be repeated.")
    head = NOTE.sub("", head)
    value = re.search(r"(?<=\w)=([\w./-]+)$", head) if not re.search(r"=[A-Z]", head) else None
    if value:
        head = head[: value.start()]
        notes.append(f"Default: `{value[1]}`.")
    if "can be repeated" in text.lower():
        notes = [note for note in notes if note != "Can be repeated."]
    return head.strip(), notes


def cells(name, text, is_option):
    head, notes = notes_of(name, text)
    if is_option:
        names, _, value = head.partition(" ")
        *short, last = names.split(",")
        head = ", ".join(f"`{one}`" for one in [*short, f"{last} {value}".strip()])
    else:
        own, _, value = head.partition(" ")
        head = f"`{value if value not in ('', 'TEXT') else own.upper()}`"
    cell = " ".join([prose(text) + ("." if notes and not text.endswith(".") else ""), *notes])
    return [one.replace("|", "\\|") for one in (head, cell)]


def table(head, entries, is_option):
    lines = [f"| {head} | |", "|---|---|"]
    for name, text in entries:
        if is_option and name.split(",")[-1].split(" ")[0] in OF_EVERY_COMMAND:
            continue
        lines.append(f"| {' | '.join(cells(name, text, is_option))} |")
    return [] if len(lines) == 2 else ["", *lines]


def sentences(text):
    return SENTENCE.sub("\n", prose(text)).splitlines()


def exit_codes(text):
    lines = []
    for part in text.partition(": ")[2].split("; "):
        code = re.match(r"(\d+(?: \+ N)?) (.*)", part)
        if code:
            lines.append(f"- `{code[1]}`: {prose(code[2])}")
        elif lines and not text.startswith("Exit code:"):
            lines[-1] += f"; {prose(part)}"
        else:
            lines.append(f"- {prose(part)}")
    return lines


def footer_lines(footer, level):
    lines = []
    for is_code, text in footer:
        if is_code:
            lines += ["", "```sh", *(line[2:] for line in text.splitlines()), "```"]
        elif text.startswith("Example"):
            lines += ["", f"{level} {text.removesuffix(':')}"]
        elif text.startswith("Exit code"):
            *first, last = exit_codes(text)
            last = last if ". " in last else last.removesuffix(".")
            lines += ["", f"{level} {text.partition(':')[0]}", "", *first, last]
        else:
            lines += ["", *sentences(text)]
    return lines


def options_lines(asked, level):
    lines = []
    for name, entries in asked.sections.items():
        if name == "Positionals":
            lines += table("argument", entries, False)
        elif name == "Options":
            lines += table("option", entries, True)
        elif name != "Subcommands":
            heading, _, more = name.removesuffix(")").partition(" (")
            lines += ["", f"{level} {heading}", *(["", f"{more[0].upper()}{prose(more)[1:]}." if "/" not in more else f"See {prose(more)}."] if more else [])]
            lines += table("option", entries, True)
    return lines


def part_of(program, command):
    """The generated part of a command's page."""
    asked = ask(program, command)
    lines = [asked.description + ".", "", "```", *asked.usage, "```"]
    parts = [name for name, _ in asked.sections.get("Subcommands", [])]
    if parts:
        listed = [(f"[`{name}`](#peakbench-{command}-{name})", text) for name, text in asked.sections["Subcommands"]]
        lines += ["", "| subcommand | |", "|---|---|", *(f"| {name} | {prose(text)} |" for name, text in listed)]
    lines += [*options_lines(asked, "##"), *footer_lines(asked.footer, "##")]
    for name in parts:
        one = ask(program, command, name)
        lines += ["", f"## peakbench {command} {name}", "", one.description + ".", "", "```", *one.usage, "```", *options_lines(one, "###")]
        if one.footer != asked.footer:
            lines += footer_lines(one.footer, "###")
    return lines


def index_of(asked, groups):
    lines = [*sentences(asked.description), "", "```", *asked.usage, "```", "", "| group | command | |", "|---|---|---|"]
    for group, entries in groups.items():
        for name, text in entries:
            lines.append(f"| {group} | [`{name}`]({name}.md) | {prose(text)} |")
            group = ""
    return [*lines, *table("option", asked.sections["Options"], True), *footer_lines(asked.footer, "##")]


def with_part(page, title, command, lines):
    """The page with its generated part replaced; a page that does not exist has nothing else."""
    part = "\n".join([BEGIN.format(command), *lines, END])
    if BEGIN.format(command) not in page:
        return f"# {title}\n\n{part}\n"
    before, _, rest = page.partition(BEGIN.format(command))
    return before + part + rest.partition(END)[2]


def pages_of(program):
    asked = ask(program)
    groups = {name: entries for name, entries in asked.sections.items() if name != "Options"}
    pages = {"README.md": ("Command line", "peakbench", index_of(asked, groups))}
    for name in (name for entries in groups.values() for name, _ in entries):
        pages[f"{name}.md"] = (f"peakbench {name}", f"peakbench {name}", part_of(program, name))
    return pages


def main(program, *arguments):
    wrong = []
    pages = pages_of(program)
    for name, (title, command, lines) in pages.items():
        path = FOLDER / name
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        wanted = with_part(found, title, command, lines)
        if "--write" in arguments:
            path.write_text(wanted, encoding="utf-8")
        elif found != wanted:
            wrong += difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), f"docs/reference/cli/{name}", f"{command} --help")
    unknown = sorted(path.name for path in FOLDER.glob("*.md") if path.name not in pages)
    wrong += [f"docs/reference/cli/{name}: there is no such command\n" for name in unknown]
    if wrong:
        sys.stdout.writelines(wrong)
        print("tests/e2e/cli_pages.py PEAKBENCH --write updates the generated parts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
