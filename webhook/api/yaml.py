"""YAML and JSON as kubectl reads them, restricted to the values of JSON.

Scalars follow kubectl's parser (https://github.com/yaml/go-yaml/blob/v2.4.3/resolve.go, through sigs.k8s.io/yaml), not
PyYAML: `1e-4` is a number, `y` is true, `10:30` and `2026-01-31` are text, `2.0` is 2. A duplicate key is an error.
Aliases and depth are limited, so that a few lines cannot become gigabytes.
"""

import re
from collections.abc import Iterable, Iterator, Set
from math import isfinite
from typing import Any, Final

import yaml
from yaml import events

from webhook.api.limits import MAX_ALIASED_VALUES, MAX_YAML_DEPTH

try:
    from yaml import CSafeDumper as _SafeDumper
    from yaml import CSafeLoader as _Loader
except ImportError:  # without libyaml, for example in a browser: slower, with different error texts
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Path = tuple[str | int, ...]


_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: Final[dict[str, bool | None]] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL")) | dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
)
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]{0,19}))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"\.(?:nan|NaN|NAN)|[-+]?\.(?:inf|Inf|INF)")
_NUMERIC: Final = re.compile("|".join(pattern.pattern for pattern in (_INTEGER, _FLOAT, _NO_NUMBER)))
# Line ends in YAML 1.1 that JSON does not have.
_BREAKS: Final = re.compile("[\\r\x85\u2028\u2029]")
# A character above U+FFFF, written in JSON as two escapes. YAML needs one escape for it.
_JSON_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "bool": bool, "int": int, "float": (int, float), "null": type(None), "timestamp": str,
}  # fmt: skip


class YamlError(ValueError):
    """The text is not valid YAML. The message contains line and column."""


def load_all(text: str | bytes) -> list[Any]:
    """The documents in `text` as JSON values, without empty documents; YamlError if the text is invalid.

    Keys are text, and numbers are finite. An alias yields the same Python object as its anchor.
    """
    try:
        readable = _readable(text)
        return list(_documents(yaml.parse(readable, Loader=_Loader)))
    except yaml.YAMLError as error:
        raise YamlError(words(error, readable)) from None
    except UnicodeError:
        raise YamlError("is not text in UTF-8") from None


def split(text: str | bytes) -> list[str]:
    """The text of each document, without empty documents; YamlError if the text is invalid.

    Each text starts with empty lines, so that its line numbers are the line numbers in `text`.
    """
    load_all(text)
    text = _readable(text)
    parts: list[str] = []
    start = line = 0
    for event in yaml.parse(text, Loader=_Loader):
        mark: Any = event.start_mark
        if isinstance(event, yaml.DocumentStartEvent):
            start, line = mark.index - mark.column, mark.line
        elif isinstance(event, yaml.DocumentEndEvent):
            part = text[start : mark.index]
            parts += ["\n" * line + part] if load_all(part) else []
    return parts


def lines(text: str | bytes, to: Iterable[Path] | None = None) -> dict[Path, int]:
    """The line (from 1) of each value of the first document, by path. The text must be valid.

    With `to`, the result has only the values at these paths, and the parents of these values.
    """
    line_of: dict[Path, int] = {}
    included = None if to is None else {path[:end] for path in to for end in range(len(path) + 1)}
    _note_lines(next(yaml.compose_all(_readable(text), Loader=_Loader)), (), line_of, included)
    return line_of


def _note_lines(node: yaml.Node, path: Path, line_of: dict[Path, int], included: Set[Path] | None) -> None:
    if path in line_of or len(line_of) > MAX_ALIASED_VALUES:
        return  # an alias, which has the line of its anchor
    line_of[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            if included is None or inner in included:
                _note_lines(value, inner, line_of, included)
                line_of[inner] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            if included is None or (*path, index) in included:
                _note_lines(item, (*path, index), line_of, included)


def texts(text: str | bytes) -> Any:
    """The first document of the valid `text`, with keys and values as their text: `{N: no}` is {"N": "no"}."""
    return _text_of(next(yaml.compose_all(_readable(text), Loader=_Loader)))


def _text_of(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _text_of(value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    return [_text_of(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else node.value


def _readable(text: str | bytes) -> str:
    """The text for the parser; UnicodeError if the bytes are not text."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    return _JSON_PAIR.sub(_join_pair, text) if text.lstrip().startswith(("{", "[")) else text


def dump(value: Any) -> str:
    """Block YAML with indented list items; text of several lines becomes a block."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def dump_document(value: Any) -> str:
    """Block YAML in kubectl's style: list items are not indented. This function is five times as fast as `dump`."""
    return yaml.dump(
        value, Dumper=_FastDumper, sort_keys=False, allow_unicode=True, width=1_000_000, explicit_start=True
    )


def dump_inline(value: Any) -> str:
    text: str = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text.strip()[1:-1]


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _FastDumper(_SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> yaml.ScalarNode:
    """The text, quoted if this module would otherwise read it back as another type. PyYAML's own rules differ."""
    style = None
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif text in _WORDS or _NUMERIC.fullmatch(text.replace("_", "")):
        style = "'"
    node: yaml.ScalarNode = dumper.represent_scalar(_TAG + "str", text, style=style)
    return node


_Dumper.add_representer(str, _text)
_FastDumper.add_representer(str, _text)


def _documents(stream: Iterator[events.Event]) -> Iterator[Any]:
    for event in stream:
        if isinstance(event, events.DocumentStartEvent):
            document = _Document(stream).value(next(stream))
            if document is not None:
                yield document


class _Document:
    """Builds one document from the parser's events.

    `anchors` contains each finished value that has an anchor, with the value's size after expansion.
    """

    def __init__(self, stream: Iterator[events.Event]) -> None:
        self.stream = stream
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.size = self.aliased = self.depth = 0

    def value(self, event: Any) -> Any:
        if isinstance(event, events.AliasEvent):
            return self.alias(event)
        before = self.size
        self.size += 1
        self.depth += 1
        if self.depth > MAX_YAML_DEPTH:
            raise _error(f"nested deeper than {MAX_YAML_DEPTH} levels", event)
        if isinstance(event, events.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, events.SequenceStartEvent):
            value = self.sequence(event)
        else:
            value = self.mapping(event)
        self.depth -= 1
        if event.anchor:
            self.anchors[event.anchor] = value, self.size - before
        return value

    def alias(self, event: events.AliasEvent) -> Any:
        if event.anchor not in self.anchors:
            raise _error(f"the alias *{event.anchor} refers to nothing before it, or to itself", event)
        value, size = self.anchors[event.anchor]
        self.size += size
        self.aliased += size
        if self.aliased > MAX_ALIASED_VALUES:
            raise _error(f"aliases repeat more than {MAX_ALIASED_VALUES:,} values", event)
        return value

    def sequence(self, event: events.SequenceStartEvent) -> list[Any]:
        _expect_tag("seq", event)
        items = []
        while not isinstance(item := next(self.stream), events.SequenceEndEvent):
            items.append(self.value(item))
        return items

    def mapping(self, event: events.Event) -> dict[str, Any]:
        _expect_tag("map", event)
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        marks: dict[str, Any] = {}
        while not isinstance(start := next(self.stream), events.MappingEndEvent):
            if isinstance(start, events.ScalarEvent) and start.value == "<<" and start.implicit[0]:
                merged += _to_merge(self.value(next(self.stream)), start)
                continue
            key = _key(self.value(start), start)
            value = self.value(next(self.stream))
            if key in mapping:
                lists = isinstance(value, list) and isinstance(mapping[key], list)
                fix = "merge both lists into one" if lists else "remove one of them"
                raise _error(f'the key "{key[:100]}" is there twice, first in line {marks[key].line + 1}: {fix}', start)
            mapping[key], marks[key] = value, start.start_mark
        for other in merged:
            for key, value in other.items():
                mapping.setdefault(key, value)
        return mapping


def _scalar(event: events.ScalarEvent) -> Any:
    if event.implicit[0] and event.tag is None:
        return _plain(event.value, event)
    tag = (event.tag or "!").removeprefix(_TAG)
    if tag in {"!", "str"}:
        return event.value
    value = _plain(event.value, event)
    if tag not in _TYPES or not isinstance(value, _TYPES[tag]):
        raise _error(f'"{event.value[:100]}" cannot be read as {event.tag}', event)
    return value


def _plain(text: str, event: events.Event) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign, *by_base = match.groups()
        base, number = next((b, n) for b, n in zip((16, 2, 8, 10), by_base, strict=True) if n is not None)
        integer = int(sign + number, base)
        if -(2**63) <= integer < (2**63 if sign else 2**64):
            return integer
    if _NO_NUMBER.fullmatch(text):
        raise _error(f"{text} is a number that JSON does not have", event)
    if _FLOAT.fullmatch(digits) and isfinite(value := float(digits)):
        # Go writes whole numbers without a point, up to this limit.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return text


def _key(key: Any, event: events.Event) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if not isinstance(key, str | int | float):
        raise _error("a key must be text", event)
    return str(key)


def _to_merge(value: Any, event: events.Event) -> list[dict[str, Any]]:
    mappings = value if isinstance(value, list) else [value]
    if not all(isinstance(mapping, dict) for mapping in mappings):
        raise _error("<< takes a mapping or a list of mappings", event)
    return mappings


def _expect_tag(kind: str, event: Any) -> None:
    if event.tag not in {None, "!", _TAG + kind}:
        raise _error(f"the tag {event.tag} has no meaning here", event)


def _join_pair(match: re.Match[str]) -> str:
    backslashes, high, low = match.groups()
    return f"{backslashes}\\U{0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00):08X}"


def _error(problem: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


# The parser notices these problems on a later line. The message therefore has the line where the quoted scalar, list,
# mapping or key starts.
_SEEN_LATE: Final = ("a simple key", "scanning a quoted scalar", "a flow sequence", "a flow mapping")
_CANNOT_START: Final = "found character that cannot start any token"
_TAB: Final = "a tab; use spaces"
# Clearer texts than libyaml's: https://github.com/yaml/libyaml/blob/0.2.5/src/parser.c and scanner.c
_MEANT: Final = {
    "found a tab character that violates indentation": _TAB,
    "found a tab character where an indentation space is expected": _TAB,
    "mapping values are not allowed in this context": (
        "a colon is not allowed here: indent the line like its neighbours, write a blank after the colon of each"
        ' key, and put text with ": " in quotes'
    ),
    "could not find expected ':'": "this line is neither a key with `: ` nor the continuation of a text",
    "did not find expected key": (
        "the indentation differs from the lines before, or quotes or brackets above end too early"
    ),
    "did not find expected '-' indicator": "a list ends here without being indented less: begin the line with `- `",
    "did not find expected ',' or ']'": "a list in brackets is not closed: write ], or a comma between its entries",
    "did not find expected ',' or '}'": "a mapping in braces is not closed: write }, or a comma between its entries",
    "found unexpected end of stream": "quotes are not closed",
    "found unknown escape character": r"a backslash in double quotes starts an escape: use single quotes, or \\",
    "did not find expected alphabetic or numeric character": "text that begins with * or & needs quotes",
    "block sequence entries are not allowed in this context": "a list must begin on a new line: write `- ` there",
}


def words(error: yaml.YAMLError, text: str) -> str:
    """The error message, with line and column if they are known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark: Any = error.context_mark if str(error.context).endswith(_SEEN_LATE) else error.problem_mark
        problem = str(error.problem or error.context)
        problem = _at_start(mark, text) if problem == _CANNOT_START else _MEANT.get(problem, problem)
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return f"is not text: {error.reason} at position {error.position}"
    return " ".join(str(error).split())


def _at_start(mark: Any, text: str) -> str:
    character = text[mark.index : mark.index + 1]
    return _TAB if character == "\t" else f"text that begins with {character} needs quotes"
