"""C++ source as tokens, and which of them stand in the bodies of functions.

No compiler: it relies on what clang-format guarantees here, that a binary operator has a space on each side and that the brackets
of template arguments have none inside.
"""

import dataclasses
import re

_PATTERN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<directive>(?m:^)[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
    | (?P<string>(?:u8|u|U|L)?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*")
    | (?P<character>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+')
    | (?P<number>0[xX][0-9a-fA-F']+[uUlLzZ]*|(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfFzZ]*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark_>\.\.\.|->\*|<=>|<<=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SKIPPED = {"space", "comment", "directive"}
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: opening for opening, close in OPENING.items()}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # string, character, number, word, mark
    text: str
    start: int
    end: int


class Source:
    """A file's text and its tokens; `partner[i]` is the bracket that goes with bracket i."""

    def __init__(self, text):
        self.text = text
        self.tokens = list(_tokens(text))
        self.partner = _partners(self.tokens)

    def is_binary(self, index):
        """An operator with a space (or a line's end) on each side, which no bracket of template arguments has."""
        token = self.tokens[index]
        return self.text[token.start - 1 : token.start].isspace() and self.text[token.end : token.end + 1].isspace()

    def line(self, position):
        return self.text.count("\n", 0, position) + 1

    def span(self, first, last):
        return self.tokens[first].start, self.tokens[last].end

    def written(self, first, last):
        start, end = self.span(first, last)
        return self.text[start:end]

    def bodies(self):
        """The bodies of functions, as pairs of the indices of their braces."""
        found = []
        self._scan(0, len(self.tokens), found)
        return found

    def _scan(self, begin, end, found):
        head = index = begin
        while index < end:
            text = self.tokens[index].text
            if text in "([" and index in self.partner:
                index = self.partner[index]
            elif text == "{" and index in self.partner:
                close = self.partner[index]
                kind = self._brace(head, index)
                if kind == "scope":
                    self._scan(index + 1, close, found)
                elif kind == "body":
                    found.append((index, close))
                index = close
                if kind != "member":
                    head = index + 1
            elif text == ";":
                head = index + 1
            index += 1

    def _brace(self, head, brace):
        """What a brace opens, by the tokens from the end of the declaration before it."""
        words, depth = [], 0
        for index in range(head, brace):
            text = self.tokens[index].text
            depth -= text in (")", "]")
            if depth == 0:
                words.append((index, text))
            depth += text in ("(", "[")
        texts = [text for _, text in words]
        if "namespace" in texts or texts[:1] == ["extern"] and self.tokens[brace - 1].kind == "string":
            return "scope"
        if "enum" in texts:
            return "other"
        if any(text == "=" and self.tokens[index - 1].text != "operator" for index, text in words):
            return "other"
        if ")" not in texts:
            return "scope" if {"class", "struct", "union"} & set(texts) else "other"
        after = texts[texts.index(")") :]
        # Foo() : a_{1} {}
        return "member" if ":" in after and self.tokens[brace - 1].kind == "word" else "body"


def _tokens(text):
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        kind = match.lastgroup if match.lastgroup != "mark" else "string"
        if kind not in _SKIPPED:
            yield Token(kind.rstrip("_"), match.group(), match.start(), match.end())
        position = match.end()


def _partners(tokens):
    partner, open_ = {}, []
    for index, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        if token.text in OPENING:
            open_.append(index)
        elif token.text in CLOSING and open_ and tokens[open_[-1]].text == CLOSING[token.text]:
            partner[index] = open_[-1]
            partner[open_.pop()] = index
    return partner
