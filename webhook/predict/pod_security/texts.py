"""The pieces that upstream's messages are made of."""

from collections.abc import Iterable, Sized

from webhook.predict.pod_security.subject import Place

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def plural(one: str, many: str, items: Sized) -> str:
    """`one` or `many`, as fits the number of items."""
    return one if len(items) == 1 else many


def quoted(items: Iterable[str]) -> str:
    """Items between quotes, as they are: `"a", "b"`."""
    return ", ".join(f'"{item}"' for item in items)


def containers(places: list[Place]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{plural('container', 'containers', places)} {quoted(place.name for place in places)}"


def setters(pod: bool, places: list[Place]) -> str:
    """Who sets something: the pod, containers, or `pod and container "a"`."""
    return " and ".join(["pod"] * pod + [containers(places)] * bool(places))


def fields(field: str, places: list[Place], *, pod: bool = False) -> tuple[str, ...]:
    """The paths of `field` in the containers at `places`, after that in the pod's spec where `pod` sets it."""
    return (f"spec.{field}",) * pod + tuple(f"{place.path}.{field}" for place in places)


def go_quoted(text: str) -> str:
    """`text` as Go's %q writes it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if escape := _ESCAPES.get(char):
        return escape
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
