"""A page of the documentation as a script: its files, and its commands with their outputs.

A YAML block with a file name in a comment in its first line is a file. In a block `console`, a line with `$` is a
command. The lines below it, if any, are its output, in which a line `...` stands for any lines. A command that ends
with `&&` continues in the next line. A command that ends with the comment `# not tested: REASON` is not run.
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
    """A file that the reader writes."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Step:
    """A command to type."""

    line: str
    """The whole command as shown in the page."""
    shown: str = ""
    """The output that the page shows."""

    @property
    def reason(self) -> str:
        """The reason why the command is not run; empty if it is run."""
        found = _NOT_TESTED.search(self.line)
        return found[1] if found else ""


def parts(text: str) -> Iterator[Heading | File | Step]:
    """The headings, files and steps of the page, in order."""
    for kind, block, title in _PARTS.findall(text):
        if title:
            yield Heading(title)
        elif kind == "console":
            yield from _steps(block)
        elif found := _NAME.match(block):
            yield File(found[1], block)


def _steps(block: str) -> Iterator[Step]:
    for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = re.match(r"(?:.*&&\n)*.*", each)
        assert lines is not None
        yield Step(lines[0], each[lines.end() + 1 :])


def rewritten(text: str, shown: Sequence[str]) -> str:
    """The page with these outputs, one for each command."""
    outputs = iter(shown)

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        steps = "".join(f"$ {step.line}\n{next(outputs)}" for step in _steps(match[2]))
        return f"```console\n{steps}```"

    return _PARTS.sub(block, text)
