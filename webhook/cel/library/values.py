"""What functions take and give besides CEL's own values."""

from typing import ClassVar


class Text:
    """A value of a type of its own, which one text stands for: equal where the texts are."""

    type: ClassVar[str]

    def __init__(self, text: str) -> None:
        self.text = text


def same(one: object, other: object) -> bool:
    """CEL's ==: numbers are equal whatever their types, and true is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other
