"""The error for an object of the wrong shape."""

import re
from collections.abc import Callable

_AT = re.compile(r" - at `(?P<where>key in )?\$?(?P<path>[^`]*)`\Z")
_TYPES = {
    "array": "a list",
    "object": "a mapping",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
_EXPECTED = re.compile(r"\AExpected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`\Z")
_BEYOND = re.compile(r"\AExpected `int` (?P<side>[<>])= (?P<bound>-?[0-9]+)\Z")


class ShapeError(ValueError):
    """A field has the wrong type. `path` is its path, such as `spec.mpiReplicaSpecs[Worker].replicas`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def decode_error(error: Exception, map_key: Callable[[], str] = lambda: "...") -> ShapeError:
    """The ShapeError for msgspec's error. msgspec's paths lack map keys; `map_key` returns the first one."""
    text = str(error)
    path = ""
    if at := _AT.search(text):
        path = at["path"].lstrip(".")
        text = text[: at.start()]
        if "[...]" in path:
            path = path.replace("[...]", f"[{map_key()}]", 1)
    if expected := _EXPECTED.match(text):
        wants = [_TYPES.get(want, want) for want in expected["want"].split(" | ") if want != "null"]
        text = f"must be {' or '.join(wants)}, not {_TYPES.get(expected['got'], expected['got'])}"
    elif beyond := _BEYOND.match(text):
        text = f"must be a whole number of {beyond['bound']} or {'less' if beyond['side'] == '<' else 'more'}"
    return ShapeError(path, text)
