"""Judges jobs as `check` does. The jobs, a policy and the objects of a cluster are texts that the user typed."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any, Final

from webhook import PROGRAM
from webhook.admission.messages import Finding
from webhook.api import yaml
from webhook.api.annotations import INJECTED
from webhook.cli import files, job_check, job_world
from webhook.cli.files import Manifest, ManifestError, line_of
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.client.access import DEFAULT_NAMESPACE
from webhook.cluster.snapshot import SnapshotError
from webhook.policy import in_force
from webhook.policy.document import PolicyError
from webhook.policy.in_force import PolicySet

NO_CLUSTER: Final = "none given"
JOB: Final = "job"
POLICY: Final = "policy"
CLUSTER: Final = "cluster"
_LINE: Final = re.compile(r"line (\d+)")

Json = dict[str, Any]


@dataclass(slots=True)
class _Answer:
    jobs: list[Json] = field(default_factory=list)
    faults: list[Json] = field(default_factory=list)
    """Problems that make a text unusable."""

    def fault(self, pane: str, message: str, line: int | None = None) -> None:
        if line is None and (match := _LINE.search(message)):
            line = int(match[1])
        self.faults.append({"pane": pane, "message": message, "line": line})


def answer(question: Mapping[str, Any]) -> Json:
    """The verdicts on all jobs in the text `job`. If the text `policy` is empty, the policies in `cluster` apply."""
    texts = {pane: str(question.get(pane) or "") for pane in (JOB, POLICY, CLUSTER)}
    result = _Answer()
    world = _world(texts, result)
    if world is not None:
        world.namespace = DEFAULT_NAMESPACE
        _judge(texts[JOB], world, result)
    return {"jobs": result.jobs, "faults": result.faults}


def _world(texts: Mapping[str, str], result: _Answer) -> JobWorld | None:
    world = job_world.of_nothing()
    world.otherwise = NO_CLUSTER
    try:
        if texts[CLUSTER].strip():
            objects = _objects(texts[CLUSTER])
            world = job_world.of_objects(objects, "the objects of the cluster", policy_namespace=PROGRAM)
        if texts[POLICY].strip():
            world.instead = _policies(texts[POLICY])
    except (ManifestError, SnapshotError) as error:
        result.fault(CLUSTER, str(error))
    except PolicyError as error:
        for fault in error.faults:
            result.fault(POLICY, f"{fault.field or 'the document'}: {fault.reason}", fault.line)
    if result.faults:
        return None
    if world.instead is None:
        for problem in world.problems:
            result.fault(CLUSTER, problem)
    return world


def _bytes(text: str) -> bytes:
    """Keeps halves of surrogate pairs, which a browser may send, so that the parser reports them."""
    return text.encode("utf-8", "surrogatepass")


# Cached: usually only the job changes.
@lru_cache(maxsize=2)
def _objects(text: str) -> tuple[Manifest, ...]:
    return tuple(files.parse(_bytes(text), CLUSTER))


@lru_cache(maxsize=2)
def _policies(text: str) -> PolicySet:
    return in_force.load_policies(text, POLICY)


def _judge(text: str, world: JobWorld, result: _Answer) -> None:
    try:
        manifests = files.parse(_bytes(text), "the text")
    except ManifestError as error:
        result.fault(JOB, str(error))
        return
    for manifest in filter(job_check.is_job, manifests):
        result.jobs.append(_shown(job_check.check(manifest, world, namespace=world.namespace), world))
    if not result.jobs:
        result.fault(JOB, "there is no MPIJob here: begin with an example", line=1)


def _shown(verdict: Verdict, world: JobWorld) -> Json:
    finding = partial(_finding, manifest=verdict.manifest)
    return {
        "name": verdict.manifest.title,
        "namespace": verdict.namespace,
        "allowed": verdict.allowed,
        "updates": verdict.updates,
        "causes": [*map(finding, verdict.validation.denied)],
        "warnings": [
            *map(finding, (*verdict.validation.warned, *verdict.standing)),
            *({"message": text} for text in _general_warnings(verdict)),
        ],
        "injected": [{"id": entry.id, "reason": entry.reason, "notes": [*entry.notes]} for entry in verdict.injected],
        "diff": [*_diff(verdict)],
        "notJudged": [
            {"why": why, "what": ["a cluster"] if why == NO_CLUSTER else names}
            for why, names in world.reasons(verdict.unknown).items()
        ],
        "decidedBy": verdict.policy.identity if verdict.policy else "",
    }


def _finding(finding: Finding, manifest: Manifest) -> Json:
    violation = finding.violation
    return {
        "rule": finding.rule,
        "field": violation.path,
        "message": violation.message,
        "fix": violation.fix,
        "line": line_of(manifest, violation.path),
    }


def _general_warnings(verdict: Verdict) -> Iterator[str]:
    for rule, fault in verdict.validation.rule_faults.items():
        yield f"the policy's rule {rule} could not be evaluated: {fault}"
    yield from (*verdict.validation.cautions, *verdict.mutation.cautions)


def _diff(verdict: Verdict) -> Iterable[str]:
    """A unified diff without headers. The annotation that lists injections is left out."""
    if verdict.mutation.document is None:
        return ()
    before = verdict.manifest.created_in(verdict.namespace)
    after = _in_order_of(before, verdict.mutation.document)
    after["metadata"].get("annotations", {}).pop(INJECTED, None)
    old, new = (yaml.dump(side).splitlines() for side in (before, after))
    return [*unified_diff(old, new, lineterm="", n=2)][2:]


def _in_order_of(before: Any, after: Any) -> Any:
    """`after` with its keys in the order of `before`."""
    if isinstance(after, dict):
        fields = before if isinstance(before, dict) else {}
        keys = [*(key for key in fields if key in after), *(key for key in after if key not in fields)]
        return {key: _in_order_of(fields.get(key), after[key]) for key in keys}
    if isinstance(after, list):
        items = before if isinstance(before, list) else []
        return [_in_order_of(old, new) for old, new in zip_longest(items, after)][: len(after)]
    return after
