"""Applies the fixes of a job's messages literally, as a user would who reads nothing else."""

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import yaml

from webhook.admission.messages import Finding
from webhook.cli.policy import job_fields

Json = Any
_PLACE: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class UnclearFixError(AssertionError):
    """The fix does not state what to write."""


def applied(job: Json, findings: Sequence[Finding]) -> Json:
    """The job with every fix; UnclearFixError for a denial whose fix names nothing to write."""
    document = copy.deepcopy(job)
    left = sorted(findings, key=_order)
    while left:
        later = [finding for finding in left if not _apply(document, finding)]
        assert len(later) < len(left), f"these lead nowhere: {later}"
        left = later
    return document


def _apply(document: Json, finding: Finding) -> bool:
    """False if the parent is missing: another fix may create it first."""
    violation = finding.violation
    for pattern, change in _FORMS:
        if found := re.match(pattern, violation.fix):
            try:
                change(document, violation.path, found)
            except LookupError:
                return False
            return True
    raise UnclearFixError(f"{violation.path}: {violation.message}. {violation.fix}")


def _order(finding: Finding) -> tuple[int, int]:
    """Fields move to their place first, since messages use the new place; a key changes last."""
    fix = finding.violation.fix
    late = 0 if fix.startswith(("Move", "Write it below")) else 2 if fix.startswith(("Rename", "Remove")) else 1
    return late, -len(finding.violation.path)


def _value(text: str) -> Json:
    return yaml.safe_load(text)


def _parts(document: Json, path: str) -> tuple[Json, Any]:
    """The mapping or list with the last key of the path, which may be absent."""
    place = job_fields.place(document, path)
    if len(place) < len(_PLACE.findall(path)):
        raise LookupError(path)
    target = document
    for key in place[:-1]:
        target = target[key]
    return target, place[-1]


def _write(document: Json, path: str, found: re.Match[str]) -> None:
    place = job_fields.place(document, path)
    known = len(place) == len(_PLACE.findall(path))
    text = re.sub(r",? (?:in quotes|or) ?.*$", "", found[1])
    if known:
        target, key = _parts(document, path)
        target[key] = _value(text)
    else:
        job_fields.put(document, path, _value(text))


def _rename(document: Json, path: str, found: re.Match[str]) -> None:
    target, key = _parts(document, path)
    target[found[1]] = target.pop(key)


def _remove(document: Json, path: str, _: re.Match[str]) -> None:
    target, key = _parts(document, path)
    del target[key]


def _below(document: Json, path: str, found: re.Match[str]) -> None:
    target, key = _parts(document, path)
    value = target.pop(key)
    for name in found[1].split("."):
        target = target.setdefault(name, {})
    target[key] = value


def _move(document: Json, path: str, found: re.Match[str]) -> None:
    target, key = _parts(document, path)
    job_fields.put(document, found[1], target.pop(key))


def _set(document: Json, path: str, found: re.Match[str]) -> None:
    name, value = found[1], _value(re.split(r",? or |, ", found[2])[0])
    where = path if name == "it" or re.search(rf"(?:^|\.){re.escape(name)}$", path) else f"{path}.{name}"
    job_fields.put(document, where, value)


_FORMS: Final[tuple[tuple[str, Callable[[Json, str, re.Match[str]], None]], ...]] = (
    (r"Write it below ([\w.]+)\.$", _below),
    (r"Move it to (\S+)\.$", _move),
    (r"(?:Rename it to|Write the field) (\S+)\.$", _rename),
    (r"Name the image, such as (\S+)\.$", _write),
    (r"Write (?!a |text |true or )(.+?)\.$", _write),
    (r"Use one of ([^,]+)", _write),
    (r"Use ([\w/.-]+), or", _write),
    (r"(?:Add it, such as|Write) \w+: (.*)\.$", _write),
    (r"Set (it|[\w.]+)(?: to|:) (.+?)\.(?: |$)", _set),
    (r"(?:Remove it|Remove one of the two)", _remove),
)
