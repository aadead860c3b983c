"""The additions of each injection to a job."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from webhook import injections
from webhook.admission.decision import Decision
from webhook.admission.validate.required_injections import field
from webhook.api import yaml
from webhook.cli.terminal import added, heading, printable
from webhook.injections import Caution, Hint
from webhook.kit.patch import Path

# Characters of a field and its value on a line of 120 characters, which starts with six spaces and a plus sign.
WIDTH: Final = 112
# Characters of a value that are shown even after a long field.
MIN_VALUE_CHARACTERS: Final = 20
APPENDED: Final = "-"
"""The last token of the path, if an operation appends to a list."""

Operation = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Injected:
    """The additions of one injection to a job."""

    id: str
    reason: str
    """The purpose of the injection; empty if the injection no longer exists."""
    notes: Sequence[str]
    patch: Sequence[Operation]

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.reason, "notes": [*self.notes], "patch": [*self.patch]}

    def as_text(self) -> Iterator[str]:
        yield heading(self.id) + (f": {self.reason}" if self.reason else "")
        yield from (f"  {printable(note)}" for note in self.notes)
        yield from (f"  {line}" for line in additions(self.patch))


def by_injection(decision: Decision) -> list[Injected]:
    # `authors` has the injection of each operation except the last. The last operation adds the annotation.
    pairs = zip(decision.authors, decision.patch, strict=False)
    return [
        Injected(
            author,
            reason=injections.REGISTRY[author].documentation[0] if author in injections.REGISTRY else "",
            notes=[note for note in decision.told.get(author, ()) if not isinstance(note, Caution | Hint)],
            patch=[operation for _, operation in group],
        )
        for author, group in groupby(pairs, key=lambda pair: pair[0])
    ]


def fields(patch: Iterable[Operation]) -> list[str]:
    """The added fields. An item that was appended to a list is reported as the list."""
    return list(dict.fromkeys(field(_target(operation)[0]) for operation in patch))


def report(entries: Sequence[Injected], *, updates: bool) -> Iterator[str]:
    if entries:
        yield "put back from the stored job:" if updates else "injected:"
    for entry in entries:
        yield from (f"  {line}" for line in entry.as_text())


def additions(patch: Iterable[Operation]) -> Iterator[str]:
    return (f"{added('+')} {printable(line)}" for line in _additions(patch))


def _additions(patch: Iterable[Operation]) -> Iterator[str]:
    for path, group in groupby(map(_target, patch), key=lambda pair: pair[0]):
        values = [value for _, value in group]
        value = [item for items in values for item in items] if isinstance(values[0], list) else values[0]
        head, inline = f"{field(path)}:", yaml.dump_inline(value)
        if len(f"{head} {inline}") <= WIDTH or not isinstance(value, dict | list):
            yield f"{head} {_cut(inline, room=WIDTH - len(head) - 1)}"
        else:
            yield head
            yield from (_cut(f"  {line}", room=WIDTH) for line in yaml.dump(_without_scripts(value)).splitlines())


def _target(operation: Operation) -> tuple[Path, Any]:
    """(path, value) of an operation. The path includes created parents. An appended item is returned in a list."""
    tokens = (token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:])
    path: list[str | int] = [int(token) if token.isdecimal() else token for token in tokens]
    value = operation["value"]
    if path[-1] == APPENDED:
        return tuple(path[:-1]), [value]
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    return tuple(path), value


def _without_scripts(value: Any) -> Any:
    """The value with the number of lines in place of each text of several lines."""
    if isinstance(value, str) and (lines := value.count("\n")):
        return f"({lines} lines)"
    if isinstance(value, list):
        return [_without_scripts(item) for item in value]
    return {key: _without_scripts(item) for key, item in value.items()} if isinstance(value, dict) else value


def _cut(text: str, *, room: int) -> str:
    room = max(room, MIN_VALUE_CHARACTERS)
    return text if len(text) <= room else f"{text[: room - 3]}..."
