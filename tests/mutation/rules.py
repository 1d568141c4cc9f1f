"""The rules: each finds the places in a function's body where a small mistake could have been made, and makes it."""

import re

from cpp import CLOSING, OPENING, Source
from faults import make_fault

_KEYWORDS = set(
    "if while for switch return throw else do case default new delete sizeof catch co_return co_await static_assert "
    "decltype alignof noexcept not and or".split()
)
_CASTS = {"static_cast", "const_cast", "reinterpret_cast", "dynamic_cast"}
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="}


def faults_in(file, text):
    """Every fault that the rules can plant, in the order of the text."""
    source = Source(text)
    found = {}
    for begin, end in source.bodies():
        skipped = _static_assertions(source, begin, end)
        for rule, edits in _places(source, begin, end):
            if any(start <= edits[0][0] < stop for start, stop in skipped):
                continue
            fault = make_fault(file, source, rule, edits)
            found.setdefault(fault.planted_in(text), fault)  # two rules may make one change
    return sorted(found.values(), key=lambda fault: (fault.edits, fault.rule))


def _places(source, begin, end):
    """(rule, edits) of the tokens of one body."""
    for index in range(begin + 1, end):
        for rule, find in RULES.items():
            for edits in find(source, index):
                yield rule, edits


def _static_assertions(source, begin, end):
    return [
        source.span(index, source.partner[index + 1])
        for index in range(begin, end)
        if source.tokens[index].text == "static_assert" and index + 1 in source.partner
    ]


def _text(source, index):
    return source.tokens[index].text if 0 <= index < len(source.tokens) else ""


def _replaced(source, index, new):
    token = source.tokens[index]
    return [(token.start, token.end, new)]


# --- Conditions -----------------------------------------------------------------------------------------


def negate_condition(source, index):
    text = _text(source, index)
    if text in ("if", "while") and _text(source, index + 1) == "(":
        yield from _negated_head(source, index + 2, source.partner[index + 1])
    elif text == "return":
        stop = _end_of_statement(source, index)
        if stop and _is_condition(source, index + 1, stop):
            yield from _negated(source, index + 1, stop)
    elif text == "?" and source.is_binary(index):
        yield from _negated(source, _begin_of_condition(source, index), index)


def _is_condition(source, begin, end):
    depth = list(_at_depth(source, begin, end))
    if any(_text(source, i) == "?" for i in depth):
        return False
    return _text(source, begin) == "!" or any(
        _text(source, i) in {*_COMPARISONS, "&&", "||"} and source.is_binary(i) for i in depth
    )


def _negated_head(source, begin, end):
    depth = list(_at_depth(source, begin, end))
    semicolons = [i for i in depth if _text(source, i) == ";"]
    begin = semicolons[-1] + 1 if semicolons else begin
    equals = [i for i in depth if i >= begin and _text(source, i) == "="]
    if not equals:
        yield from _negated(source, begin, end)
    elif not semicolons and source.tokens[equals[0] - 1].kind == "word" and _text(source, begin - 2) == "if":
        # if (const auto* found = ...): the declaration stays
        at = source.tokens[end].start
        yield [(at, at, f"; !{_text(source, equals[0] - 1)}")]


def _negated(source, begin, end):
    depth = [_text(source, i) for i in _at_depth(source, begin, end)]
    if begin >= end or {"==", "!="} & set(depth) and not {"&&", "||", "?"} & set(depth):
        return  # flip-comparison makes the same change
    start, stop = source.span(begin, end - 1)
    if _text(source, begin) == "!" and end - begin > 1 and not {"&&", "||", "?", *_COMPARISONS} & set(depth):
        yield [(start, start + 1, "")]
    else:
        yield [(start, start, "!("), (stop, stop, ")")]


def _begin_of_condition(source, index):
    index -= 1
    while True:
        text = _text(source, index)
        if text in CLOSING:
            index = source.partner[index]
        elif text in OPENING or text in _ASSIGNMENTS or text in ("return", ",", ";", ":", "?", "}"):
            return index + 1
        index -= 1


def _at_depth(source, begin, end):
    """The indices from begin to end that stand in no bracket of their own."""
    index = begin
    while index < end:
        yield index
        if _text(source, index) in OPENING and index in source.partner:
            index = source.partner[index]
        index += 1


def _end_of_statement(source, index):
    for i in _at_depth(source, index, len(source.tokens)):
        if _text(source, i) == ";":
            return i
    return None


def flip_comparison(source, index):
    text = _text(source, index)
    if text in _COMPARISONS and source.is_binary(index):
        yield _replaced(source, index, _COMPARISONS[text])


def swap_logic(source, index):
    text = _text(source, index)
    if text in ("&&", "||") and source.is_binary(index):
        yield _replaced(source, index, "||" if text == "&&" else "&&")


# --- Operators and operands -------------------------------------------------------------------------------


def swap_plus_minus(source, index):
    text = _text(source, index)
    swapped = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}.get(text)
    if swapped and source.is_binary(index) and not _beside_a_string(source, index):
        yield _replaced(source, index, swapped)


def _beside_a_string(source, index):
    return any(source.tokens[i].kind in ("string", "character") for i in (index - 1, index + 1) if i < len(source.tokens))


def swap_operands(source, index):
    if _text(source, index) in ("-", "/", "%", "<", ">", "<=", ">=") and source.is_binary(index):
        left, right = _operand_before(source, index), _operand_after(source, index)
        if left is None or right is None or _has_sign(source, left) or _is_distance(source, left, right):
            return
        yield from _exchanged(source, (left, index - 1), (index + 1, right))


def _has_sign(source, left):
    """-a <= b is -b <= a."""
    return _text(source, left - 1) in ("-", "!", "~", "*", "&") and not source.is_binary(left - 1)


def _is_distance(source, left, right):
    """|a - b|, which is |b - a|."""
    inside = _text(source, left - 1) == "(" and source.partner[left - 1] == right + 1
    return inside and (_text(source, left - 2) == "abs" or _text(source, right + 3) == "abs")


def _operand_before(source, index):
    """The first token of the name, number or call that ends before an operator."""
    at = index - 1
    while at > 0:
        if _text(source, at) in (")", "]"):
            at = source.partner[at] - 1
            if _text(source, at) == ">":
                at = _template_begin(source, at) - 1
            if source.tokens[at].kind != "word" and _text(source, at) not in (")", "]"):
                return at + 1 if _text(source, at + 1) == "(" else None
            if _text(source, at) in _KEYWORDS:
                return None
            continue
        if source.tokens[at].kind not in ("word", "number"):
            return None
        if _text(source, at - 1) not in (".", "->", "::"):
            return at
        at -= 2
        if source.tokens[at].kind not in ("word",) and _text(source, at) not in (")", "]"):
            return None
    return None


def _template_begin(source, index):
    depth = 0
    while index > 0:
        depth += {">": 1, "<": -1}.get(_text(source, index), 0)
        if depth == 0:
            return index
        index -= 1
    return index


def _template_end(source, index):
    depth = 0
    while index + 1 < len(source.tokens):
        depth += {"<": 1, ">": -1}.get(_text(source, index), 0)
        if depth == 0:
            break
        index += 1
    return index


def _operand_after(source, index):
    """The last token of the name, number or call that begins after an operator."""
    at = index + 1
    if _text(source, at) == "(":
        return source.partner[at]
    if source.tokens[at].kind not in ("word", "number"):
        return None
    while True:
        following = _text(source, at + 1)
        if following in ("(", "["):
            at = source.partner[at + 1]
        elif following == "<" and not source.is_binary(at + 1):
            at = _template_end(source, at + 1)
        elif following in (".", "->", "::") and source.tokens[at + 2].kind == "word":
            at += 2
        elif following in ("++", "--", "{"):
            return None
        else:
            return at


def swap_arguments(source, index):
    """Of a call with two arguments."""
    if source.tokens[index].kind != "word" or _text(source, index) in _KEYWORDS | _CASTS or _text(source, index + 1) != "(":
        return
    if _text(source, index) in ("min", "max") or _declares(source, index):
        return
    close = source.partner[index + 1]
    commas = [i for i in _at_depth(source, index + 2, close) if _text(source, i) == ","]
    if len(commas) != 1 or not index + 2 < commas[0] < close - 1:
        return
    first, second = (index + 2, commas[0] - 1), (commas[0] + 1, close - 1)
    if _shape(source, *first) == _shape(source, *second):
        yield from _exchanged(source, first, second)


def _shape(source, first, last):
    """What tells arguments apart that cannot be of one type."""
    literal = any(source.tokens[i].kind == "string" for i in range(first, last + 1))
    return literal, _text(source, first) in ("[", "{"), _text(source, last) == ")"


def _declares(source, index):
    """Whether the name before a bracket is that of a variable being declared."""
    before = source.tokens[index - 1]
    attached = source.text[before.start - 1 : before.start] not in (" ", "\n")
    return before.kind == "word" and before.text not in _KEYWORDS or before.text in (">", "&", "*") and attached


def _exchanged(source, one, other):
    first, second = source.written(*one), source.written(*other)
    if first != second:
        yield [(*source.span(*one), second), (*source.span(*other), first)]


def swap_min_max(source, index):
    swapped = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element"}
    text = _text(source, index)
    if text in swapped and _text(source, index - 1) == "::" and _text(source, index - 2) == "std":
        yield _replaced(source, index, swapped[text])


# --- Calls and constants ------------------------------------------------------------------------------------


_ONLY_FASTER = {"reserve", "shrink_to_fit"}


def delete_call(source, index):
    """A statement that is a call and nothing else."""
    before = _text(source, index - 1)
    starts = before in (";", "{", "}", "else", "do") or before == ")" and _heads_statement(source, index - 1)
    if not starts or source.tokens[index].kind != "word" or _text(source, index) in _KEYWORDS:
        return
    end = _operand_after(source, index - 1)
    if end is None or _text(source, end) != ")" or _text(source, end + 1) != ";":
        return
    if _text(source, source.partner[end] - 1) in _ONLY_FASTER:
        return
    start, _ = source.span(index, end)
    yield [(start, source.tokens[end + 1].end, "{}")]


def _heads_statement(source, close):
    opening = source.partner[close]
    return _text(source, opening - 1) in ("if", "while", "for", "constexpr", "switch")


def shift_constant(source, index):
    token = source.tokens[index]
    if token.text in ("true", "false") and token.kind == "word":
        yield _replaced(source, index, "false" if token.text == "true" else "true")
    elif token.kind == "number":
        yield _replaced(source, index, one_more(token.text))


def one_more(number):
    hexadecimal = re.fullmatch(r"(0[xX])([0-9a-fA-F']+)([uUlLzZ]*)", number)
    if hexadecimal:
        prefix, digits, suffix = hexadecimal.groups()
        return f"{prefix}{int(digits.replace(chr(39), ''), 16) + 1:X}{suffix}"
    digits, suffix = re.fullmatch(r"(.*?)([uUlLzZfF]*)", number).groups()
    digits = digits.replace("'", "")
    if re.fullmatch("0[0-7]+", digits):
        return f"0{int(digits, 8) + 1:o}{suffix}"
    if digits.isdigit():
        return f"{int(digits) + 1}{suffix}"
    return f"{float(digits) + 1!r}{suffix}"


RULES = {
    "negate-condition": negate_condition,
    "flip-comparison": flip_comparison,
    "swap-logic": swap_logic,
    "swap-plus-minus": swap_plus_minus,
    "swap-operands": swap_operands,
    "swap-arguments": swap_arguments,
    "swap-min-max": swap_min_max,
    "delete-call": delete_call,
    "shift-constant": shift_constant,
}
