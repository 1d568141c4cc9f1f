"""Texts and objects of anyone's, made safe to show."""

import json
from typing import Any

_LONGEST = 200


def shown(text: str) -> str:
    """Without what a terminal or a page would act upon: escape sequences, and marks that turn the direction of writing."""
    return "".join(one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode("ascii") for one in text)


def shown_object(value: Any) -> str:
    """Its repr, cut short; objects may raise there."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"
    return shown(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


def plain(value: Any) -> Any:
    """As JSON can hold it: itself, or what is shown of it."""
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError, RecursionError):
        return shown_object(value)


def kind_of(value: Any) -> str:
    """What it is, for a message: "a Linear", "(an AdamW, nothing)"."""
    if value is None:
        return "nothing"
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, tuple):
        return f"({', '.join(kind_of(one) for one in value)})"
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}" + (f" of shape {tuple(shape)}" if shape is not None else "")
