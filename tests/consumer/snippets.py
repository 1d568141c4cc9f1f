"""The fenced blocks of a document for authors of plugins.

What stands before a block, invisible on the page, says how it is checked where it cannot stand alone:

    <!-- snippet: body -->            C++: statements; there are a recipe, model, training, batch, parameter, parameters, tensor
    <!-- snippet: members of X -->    C++: members of a class derived from X
    <!-- snippet: members of X; MORE -->    the same, which has MORE members
    <!-- snippet: entry -->           JSON: fields of a manifest's entry, strategy or model
    <!-- snippet: before -->          of an earlier revision: it must not compile, or must be refused, any more
"""

import dataclasses
import re

BLOCK = re.compile(r"(?:^<!-- snippet: (?P<how>[^\n]*?) -->\n)?^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Snippet:
    page: str
    line: int  # of its first line of text
    language: str
    how: str
    text: str

    def place(self):
        return f"{self.page}:{self.line}"


def snippets_of(path):
    text = path.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Snippet(path.name, line, match["language"], match["how"] or "", body))
    return found


# What a body may use.
PARAMETERS = ("Recipe& recipe, Model& model, Training& training, const Batch& batch, const Parameter& parameter, "
              "const std::vector<Parameter>& parameters, at::Tensor tensor, nn::LinearLayer& layer, UpdateRule& inner")  # fmt: skip


def as_cpp(snippet, number):
    """In a namespace of its own, with the page's own lines in messages."""
    line = f'#line {snippet.line} "{snippet.page}"\n'
    text = snippet.text
    if snippet.how == "body":
        text = f"[[maybe_unused]] auto snippet({PARAMETERS}) {{\n{line}{text}\n}}"
    elif snippet.how.startswith("members of "):
        base, _, more = snippet.how.removeprefix("members of ").partition(";")
        text = f"struct Snippet : {base} {{\n{more}\n{line}{text}\n}};"
    else:
        text = line + text
    return f"namespace snippet_{number} {{\nusing namespace peakbench;\n{text}\n}}\n"


def unit(snippets, headers):
    """One file of all of them: LibTorch's headers are parsed once."""
    includes = "".join(f"#include <peakbench/{name}>\n" for name in headers)
    parts = "".join(as_cpp(snippet, number) for number, snippet in enumerate(snippets))
    return f"#include <ATen/ATen.h>\n{includes}{parts}"
