"""What jobs ask for by annotation: only ids of rules and injections that there are mean anything."""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook import PROGRAM, injections, rules
from webhook.api.names import closest_name
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts
from webhook.installation.doctor.unread import Unread
from webhook.installation.limits import MAX_LINES_PER_CHECK
from webhook.policy.exemptions import ASKED

ASKED_IN_VAIN: Final = DiagnosisKind("asked-in-vain", Severity.WARNING)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Name the jobs whose annotations have no effect."""
    if isinstance(facts.asked_in_vain, Unread):
        yield not_known("what jobs ask for by annotation", facts.asked_in_vain.reason)
        return
    more = len(facts.asked_in_vain) - MAX_LINES_PER_CHECK
    for number, found in enumerate(facts.asked_in_vain[:MAX_LINES_PER_CHECK], start=1):
        kind, known = (
            ("rule", [*rules.REGISTRY]) if found.annotation == ASKED else ("injection", [*injections.REGISTRY])
        )
        names = ", ".join(_named(each, known) for each in found.unknown[:MAX_LINES_PER_CHECK])
        others = f"; and {more} more like this" if more > 0 and number == MAX_LINES_PER_CHECK else ""
        yield ASKED_IN_VAIN(
            f"{found.annotation} of MPIJob {found.job} has what is no {kind}: {names}{others}",
            fix=f"correct it in the file of the job; `{PROGRAM} rules` lists all rules and injections",
        )
    yield ok("the annotations of all jobs name rules and injections that there are")


def _named(unknown: str, known: Iterable[str]) -> str:
    near = closest_name(unknown, known)
    return f'"{unknown[:63]}"' + (f" (did you mean {near}?)" if near else "")
