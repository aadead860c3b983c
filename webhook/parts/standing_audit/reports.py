"""Report objects for jobs that break the policy, in the format of other policy engines.

Reports of openreports.io are written, or PolicyReports of wgpolicyk8s.io if openreports.io is not installed. Every
replica writes reports, under names that are derived from the jobs' uids. The job owns its report, so the garbage
collector deletes the report.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook import PROGRAM
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.api.mpijob import API_VERSION
from webhook.client.calls import ApiError
from webhook.client.objects import KubernetesObject
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.cluster.view import ABSENT, Answer
from webhook.controllers.reconciler import PacedClient, Restraint
from webhook.kit.importance import Importance
from webhook.kit.settings import Action
from webhook.parts.standing_audit.limits import MAX_REPORTED_CHARACTERS, MAX_REPORTED_RESULTS

LABEL: Final = "training.openshift.io/audit"
PREFIX: Final = f"{PROGRAM}-"
SEVERITY: Final = {Importance.FAILS: "high", Importance.HARMS: "medium", Importance.MINOR: "low"}
# Tools that compute a score ignore "warn".
RESULT: Final = {Action.DENY: "fail", Action.WARN: "warn", Action.AUDIT: "warn"}
# Seconds.
PATIENCE: Final = 30.0
_NOT_FOUND: Final = 404


class SeenReport(msgspec.Struct, frozen=True, gc=False):
    """A report in the cluster."""

    job: str
    content: str
    """A hash of the summary and results."""


class _Scope(msgspec.Struct):
    name: str = ""


class _Report(msgspec.Struct):
    scope: _Scope | None = None
    summary: Any = None
    results: Any = None


def seen(data: bytes | msgspec.Raw) -> SeenReport:
    decoded = _decoder.decode(data)
    content = msgspec.json.encode([decoded.summary, decoded.results], order="deterministic")
    return SeenReport((decoded.scope or _Scope()).name, hashlib.sha256(content).hexdigest())


_decoder = msgspec.json.Decoder(_Report)


def _kind(api_version: str, plural: str) -> Kind[ByNamespace, SeenReport]:
    return Kind(plural, f"/apis/{api_version}/{plural}", key=by_namespace, project=seen, label_selector=LABEL)


REPORTS: Final = _kind("openreports.io/v1alpha1", "reports")
POLICY_REPORTS: Final = _kind("wgpolicyk8s.io/v1alpha2", "policyreports")
KINDS: Final = {"reports": "Report", "policyreports": "PolicyReport"}


def report(job: MPIJobRecord, decision: Decision) -> KubernetesObject | None:
    """The report without apiVersion and kind; None if the job breaks no rule."""
    results = [_result(action, finding) for action, finding in decision.findings]
    if not results:
        return None
    owner = {"apiVersion": API_VERSION, "kind": "MPIJob", "name": job.name, "uid": job.uid}
    counts = {"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0}
    for result in results:
        counts[result["result"]] += 1
    return {
        "metadata": {
            "name": _key(job)[1],
            "namespace": job.namespace,
            "labels": {"app.kubernetes.io/managed-by": PROGRAM, LABEL: "true"},
            "ownerReferences": [owner],
        },
        "scope": {**owner, "namespace": job.namespace},
        "summary": counts,
        "results": results[:MAX_REPORTED_RESULTS],
    }


def _result(action: Action, finding: Finding) -> dict[str, Any]:
    return {
        "source": PROGRAM,
        "policy": PROGRAM,
        "rule": finding.rule,
        "category": "MPIJob",
        "severity": SEVERITY[finding.importance[0]],
        "result": RESULT[action],
        "scored": action is Action.DENY,
        "message": f"{finding.violation.path}: {finding.sentence}"[:MAX_REPORTED_CHARACTERS],
        "properties": {"action": str(action), "field": finding.violation.path[:MAX_REPORTED_CHARACTERS]},
    }


def _key(job: MPIJobRecord) -> ByNamespace:
    return job.namespace, PREFIX + job.uid


class Reports:
    """Creates, updates and deletes reports.

    `changed` is called with the key of a job whose report is wrong. `moved` is called after the first list of a kind,
    because all reports may then have to be of this kind.
    """

    def __init__(self, *, api: PacedClient, watches: Iterable[Watch[ByNamespace, SeenReport]]) -> None:
        self.changed: Callable[[ByNamespace], None] = lambda _: None
        self.moved: Callable[[], None] = lambda: None
        self.watches = tuple(watches)
        self._api = api
        self._clock = asyncio.get_running_loop().time
        self._expected: dict[ByNamespace, str] = {}
        self._written: Restraint[ByNamespace] = Restraint()
        self._listed_kinds: set[str] = set()
        for watch in self.watches:
            watch.store.on_change(self._seen_changed)
            watch.store.on_list(partial(self._listed, watch))

    async def settled(self) -> None:
        """Wait until the existing reports are listed, at most `PATIENCE` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for watch in self.watches:
                    await watch.settled()

    def concerns(self) -> dict[str, str]:
        if not all(watch.not_installed for watch in self.watches):
            return {}
        missing = "neither reports.openreports.io nor policyreports.wgpolicyk8s.io is installed"
        return {"audit-reports": f"no report is written: {missing}"}

    def differs(self, job: MPIJobRecord, decision: Decision | None) -> bool:
        """Whether the job's report must be written or deleted. `decision` is None for a job that has ended."""
        return any(self._calls(job, decision))

    async def write(self, job: MPIJobRecord, decision: Decision | None) -> float | None:
        """Writes or deletes the report. If it was written recently, only returns the seconds to wait."""
        calls = list(self._calls(job, decision))
        if calls and (wait := self._written.wait(_key(job), self._clock())):
            return wait
        for path, body in calls:
            try:
                if body is None:
                    await self._api.request("DELETE", path)
                else:
                    await self._api.request("PATCH", f"{path}?fieldManager={PROGRAM}&force=true", body)
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
        if calls:
            self._written.note(_key(job), self._clock())
        return None

    def forget(self, job: MPIJobRecord) -> None:
        self._expected.pop(_key(job), None)
        self._written.forget(_key(job))

    def _calls(self, job: MPIJobRecord, decision: Decision | None) -> Iterator[tuple[str, KubernetesObject | None]]:
        """Paths and bodies of the necessary writes. A body of None deletes the report."""
        key, chosen = _key(job), self._chosen()
        self._expected.pop(key, None)
        content = None if decision is None else report(job, decision)
        for watch in () if chosen is None else self.watches:
            collection, _, plural = watch.kind.path.rpartition("/")
            body = expected = None
            if watch is chosen and content is not None:
                body = {"apiVersion": collection.removeprefix("/apis/"), "kind": KINDS[plural], **content}
                expected = self._expected[key] = seen(msgspec.json.encode(body)).content
            existing = watch.get(key)
            if existing is not Answer.UNKNOWN and (None if existing is ABSENT else existing.content) != expected:
                namespace, name = (quote(part, safe="") for part in key)
                yield f"{collection}/namespaces/{namespace}/{plural}/{name}", body

    def _chosen(self) -> Watch[ByNamespace, SeenReport] | None:
        """The first installed kind; None while its reports cannot be read."""
        watch = next((watch for watch in self.watches if not watch.refused), None)
        return watch if watch is not None and watch.known else None

    def _listed(self, watch: Watch[ByNamespace, SeenReport]) -> None:
        if watch.kind.name not in self._listed_kinds:
            self._listed_kinds.add(watch.kind.name)
            self.moved()

    def _seen_changed(self, key: ByNamespace, old: SeenReport | None, new: SeenReport | None) -> None:
        if self._expected.get(key) != (None if new is None else new.content) and (existing := new or old) is not None:
            self.changed((key[0], existing.job))
