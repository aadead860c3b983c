"""What the YAML parser's complaints mean, for who wrote the text."""

from typing import Any, Final

import yaml

_CANNOT_START: Final = "found character that cannot start any token"
_TAB: Final = "a tab; use spaces"
# By libyaml's texts: https://github.com/yaml/libyaml/blob/0.2.5/src/parser.c and scanner.c
_MEANT: Final = {
    "found a tab character that violates indentation": _TAB,
    "found a tab character where an indentation space is expected": _TAB,
    "mapping values are not allowed in this context": (
        "a colon where none can be: indent the line as those that it belongs to, write a blank after the colon of each"
        ' key, and put text with ": " in quotes'
    ),
    "could not find expected ':'": "the line above is neither a key with `: ` nor the continuation of a text",
    "did not find expected key": (
        "is indented otherwise than the lines that it belongs to, or follows quotes or brackets that end too early"
    ),
    "did not find expected '-' indicator": "a list ends here without being indented less: begin the line with `- `",
    "did not find expected ',' or ']'": "a list in brackets is not closed: write ], or a comma between its entries",
    "did not find expected ',' or '}'": "a mapping in braces is not closed: write }, or a comma between its entries",
    "found unexpected end of stream": "quotes are not closed",
    "found unknown escape character": r"a backslash in double quotes stands for an escape: use single quotes, or \\",
    "did not find expected alphabetic or numeric character": "text that begins with * or & needs quotes",
    "block sequence entries are not allowed in this context": "a list begins on a line of its own: write `- ` below",
}


def words(error: yaml.YAMLError, text: str) -> str:
    """What is wrong with `text`, with line and column where they are known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        problem = str(error.problem or error.context)
        problem = _at_start(mark, text) if problem == _CANNOT_START else _MEANT.get(problem, problem)
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return f"is not text: {error.reason} at position {error.position}"
    return " ".join(str(error).split())


def _at_start(mark: Any, text: str) -> str:
    """About a character with which nothing begins."""
    found = text[mark.index : mark.index + 1]
    return _TAB if found == "\t" else f"no text begins with {found} unless it is in quotes"
