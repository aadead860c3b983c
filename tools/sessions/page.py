"""Parses a page of the documentation into files and commands.

A YAML block is a file if its first line is a comment with a file name. In a block `console`, a command starts with `$`.
The lines below a command are its output. A command that ends with `&&` continues in the next line. A command that ends
with the comment `# not tested: REASON` is not run.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_PARTS: Final = re.compile(r"^```(console|yaml)\n(.*?)^```$|^#+ ([^\n]*)$", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"# (\S+\.yaml)\n")
_NOT_TESTED: Final = re.compile(r"\s+# not tested: (.+)$")


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class File:
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Step:
    line: str
    """The whole command, with its comment."""
    shown: str = ""

    @property
    def reason(self) -> str:
        """The reason why the command is not run; empty if it is run."""
        match = _NOT_TESTED.search(self.line)
        return match[1] if match else ""


def parts(text: str) -> Iterator[Heading | File | Step]:
    for kind, block, title in _PARTS.findall(text):
        if title:
            yield Heading(title)
        elif kind == "console":
            yield from _steps(block)
        elif match := _NAME.match(block):
            yield File(match[1], block)


def _steps(block: str) -> Iterator[Step]:
    for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line = re.match(r"(?:.*&&\n)*.*", text)
        assert line is not None
        yield Step(line[0], text[line.end() + 1 :])


def rewritten(text: str, shown: Sequence[str]) -> str:
    outputs = iter(shown)

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        steps = "".join(f"$ {step.line}\n{next(outputs)}" for step in _steps(match[2]))
        return f"```console\n{steps}```"

    return _PARTS.sub(block, text)
