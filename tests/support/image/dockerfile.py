"""A Dockerfile as instructions: as much of its language as ours uses.

https://docs.docker.com/reference/dockerfile/
"""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Stage:
    """From a FROM to the next one: `base` with variables filled in, `name` or ""."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def last(self, keyword: str) -> str:
        """The text of the last instruction of that kind, "" where there is none."""
        return next((text for found, text in reversed(self.instructions) if found == keyword), "")

    def command(self, keyword: str) -> list[str]:
        """The list that ENTRYPOINT or CMD is."""
        words: list[str] = json.loads(self.last(keyword))
        return words

    @property
    def environment(self) -> dict[str, str]:
        """Every ENV."""
        pairs = [pair for keyword, text in self.instructions if keyword == "ENV" for pair in shlex.split(text)]
        return dict(pair.split("=", 1) for pair in pairs)

    @property
    def copies(self) -> list[tuple[str, list[str], str]]:
        """Every COPY: the stage that it is from or "", the sources, the destination."""
        found = []
        for words in (shlex.split(text) for keyword, text in self.instructions if keyword == "COPY"):
            origin = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
            found.append((origin, words[:-1], words[-1]))
        return found


def parse(path: Path, **arguments: str) -> list[Stage]:
    """The stages in their order, with the values of build arguments."""
    text = "\n".join(line for line in path.read_text().splitlines() if line.strip() and line.lstrip()[0] != "#")
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        keyword, rest = line.split(maxsplit=1)
        if keyword == "ARG" and not stages:
            name, _, value = rest.partition("=")
            arguments.setdefault(name, value)
        elif keyword == "FROM":
            base, *alias = rest.split()
            filled = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], base)
            stages.append(Stage(filled, alias[-1] if alias else ""))
        else:
            stages[-1].instructions.append((keyword, rest))
    return stages
