"""Selects the findings that an update makes worse. Old violations of the stored job do not block an update.

A finding is not worse if the stored object has the same fault in the same place. Containers and volumes are identified
by name, because an inserted item moves the items after it. A renamed item is regarded as the same item. Items of other
lists have no names, so only the number of findings is compared. A fault with a `Degree` is not worse if the degree does
not rise, even if the text of the fault changes.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from msgspec import structs

from webhook.admission.messages import Finding
from webhook.api.mpijob import MPIJob, replica_path
from webhook.cluster.view import NothingKnown
from webhook.kit.context import Context, Memo
from webhook.kit.settings import Action
from webhook.rules import Degree

_ITEM: Final = re.compile(
    r"(spec\.mpiReplicaSpecs\[\w+\])\.template\.spec\.(containers|initContainers|volumes)\[(\d+)\]"
)
_POSITION: Final = re.compile(r"\[\d+\]")

ActedFinding = tuple[Finding, Action]
Named = Callable[[str], str]
Key = tuple[str, ...]


def worse(
    findings: Sequence[ActedFinding], job: MPIJob, stored_findings: Iterable[Finding], stored: MPIJob
) -> list[ActedFinding]:
    """The findings that are worse than the findings about the `stored` job."""
    items, stored_items = _items(job), _items(stored)
    renamed = {place: _renamed(names, stored_items.get(place, ())) for place, names in items.items()}
    in_job, in_stored = _by_name(renamed), _by_name(stored_items)
    before: Counter[Key] = Counter()
    degrees: dict[Key, list[Degree]] = {}
    for finding in stored_findings:
        if degree := finding.violation.degree:
            degrees.setdefault(_measured(finding, degree, in_stored), []).append(_named(degree, in_stored))
        else:
            before[_identity(finding, in_stored)] += 1
    worse_findings = []
    for finding, action in findings:
        if degree := finding.violation.degree:
            stored_degrees = degrees.get(_measured(finding, degree, in_job), ())
            if not any(_named(degree, in_job).is_within(then) for then in stored_degrees):
                worse_findings.append((finding, action))
        elif before[identity := _identity(finding, in_job)]:
            before[identity] -= 1
        else:
            worse_findings.append((finding, action))
    return worse_findings


def judging_stored(ctx: Context, job: MPIJob, old: MPIJob) -> Context:
    """`ctx` for rules that judge the stored job. If the update starts the job, the view answers UNKNOWN.

    The reason is that a claim or a template may have been replaced while the job had no pods.
    """
    starts = job.active_here and not old.active_here
    return structs.replace(ctx, view=NothingKnown() if starts else ctx.view, memo=Memo())


def _identity(finding: Finding, named: Named) -> Key:
    """A key that is equal for two findings about the same fault."""
    violation = finding.violation
    return finding.rule, violation.ceiling, named(violation.path), violation.message


def _measured(finding: Finding, degree: Degree, named: Named) -> Key:
    """A key that is equal for two findings that differ only in the amount of their degree."""
    return finding.rule, finding.violation.ceiling, named(degree.of)


def _named(degree: Degree, named: Named) -> Degree:
    if isinstance(degree.amount, frozenset):
        return Degree(degree.of, frozenset(map(named, degree.amount)))
    return degree


def _items(job: MPIJob) -> dict[tuple[str, str], list[str]]:
    """The names of containers and volumes."""
    items: dict[tuple[str, str], Sequence[Any]] = {}
    for role, path, replica in job.replicas:
        spec = replica.template.spec
        items[replica_path(role), "containers"] = replica.template.containers
        items[replica_path(role), "initContainers"] = replica.template.init_containers
        items[path, "volumes"] = (spec and spec.volumes) or ()
    return {place: [item.name for item in listed] for place, listed in items.items()}


def _renamed(names: Sequence[str], stored: Sequence[str]) -> list[str]:
    """`names` with the old names of renamed items. A renamed item has the same position in `names` and `stored`."""
    new, gone = set(names).difference(stored), set(stored).difference(names)
    pairs = zip_longest(names, stored[: len(names)], fillvalue="")
    return [then if name in new and then in gone else name for name, then in pairs]


def _by_name(items: Mapping[tuple[str, str], Sequence[str]]) -> Named:
    """A function that replaces positions in paths by names."""

    def name(path: str) -> str:
        item = _ITEM.match(path)
        if item is None:
            return _POSITION.sub("[]", path)
        there, index = items.get((item[1], item[2]), ()), int(item[3])
        called = there[index] if index < len(there) else ""
        rest = _POSITION.sub("[]", path[item.end() :])
        return f"{item[1]}.{item[2]}[{called or index}]{rest}"

    return name
