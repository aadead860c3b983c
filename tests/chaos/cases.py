"""Reviews and their expected replies, which are the bytes that the offline pipeline returns."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.support.hostile import SHAPES
from tests.support.installation import inventory
from tests.support.jobs import body, changed
from tests.support.policies import HEADER, configmap
from webhook.admission import pipelines, policy_review
from webhook.admission.pipelines import Hook
from webhook.api import review
from webhook.cli import files
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.store import load_file
from webhook.rules import REGISTRY

HOOKS: tuple[Hook, ...] = ("mutate", "validate")
LARGEST = 2**20
# Every rule denies, so that a verdict shows every violation.
POLICY = HEADER + f"rules: {json.dumps({name: {'action': 'deny'} for name in REGISTRY})}\n"
HOSTILE_POLICIES = {
    "unknown keys": HEADER + "rules: {" + ", ".join(f"k{i}: {{}}" for i in range(10_000)) + "}",
    "deep": HEADER + "rules: " + "[" * 5_000 + "]" * 5_000,
    "aliases": HEADER + "k0: &a0 [x, x]\n" + "".join(f"k{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(12)),
    "not YAML": HEADER + "rules: {\x00",
    "a wrong value everywhere": HEADER + "rules: {" + ", ".join(f"{rule}: 7" for rule in REGISTRY) + "}",
    "a large number": HEADER + "priority: 1" + "0" * 5_000,
}  # fmt: skip


class Case(NamedTuple):
    name: str
    path: str
    body: bytes
    reply: bytes
    asks: bool = False
    """The review queries the cluster, so it waits while the cluster is unavailable."""


class Offline:
    """Computes verdicts without a service, from the snapshot in `file` and the replicas' policy file."""

    def __init__(self, file: Path, policy: Path) -> None:
        manifests, errors = files.load([str(file)])
        assert not errors
        self._view = Snapshot(manifest.document for manifest in manifests)
        self._policies = PolicySet(load_file(policy.stem, policy.read_bytes(), policy_model()))

    def case(self, name: str, hook: Hook, sent: bytes) -> Case:
        """The review `sent` to `hook`. No user may exempt a job from a rule."""
        request = review.decode(sent)
        granted: dict[str, bool] | None = None
        while True:
            decision = pipelines.decide(
                hook,
                request,
                policies=self._policies,
                view=self._view,
                today=date.min,
                granted=granted,
            )
            if set(decision.requested) <= set(granted or ()):
                break
            granted = dict.fromkeys(decision.requested, False)
        asks = decision.depends_on_quota or bool(decision.requested)
        return Case(name, f"/{hook}-mpijob", sent, review.encode(decision.response(request.uid)), asks)

    def usual(self) -> list[Case]:
        """Reviews of creations and updates. Each job refers to a different object. No review reserves quota."""
        exempt = {"metadata.annotations": {"training.openshift.io/exempt": "worker-count"}, "Worker.replicas": 1}
        jobs = [*inventory.jobs(), inventory.full_job(**{"metadata.name": "exempt", **exempt})]
        reviews = {job["metadata"]["name"]: body(job, dryRun=True) for job in jobs}
        old = inventory.full_job(**{"metadata.name": "stored"})
        larger = changed({"Worker.replicas": 5}, old)
        reviews["update"] = body(larger, old=old, dryRun=True)
        return [self.case(f"{name}, {hook}", hook, sent) for name, sent in reviews.items() for hook in HOOKS]

    def hostile(self, rng: Random, count: int) -> Iterator[Case]:
        """Jobs that are costly to review, from a few kB to a few MB."""
        for name in rng.sample(sorted(SHAPES), count):
            length = rng.choice((10_000, 100_000, LARGEST))
            job: dict[str, Any] = SHAPES[name](length)
            job["metadata"]["namespace"] = inventory.TEAM
            sent = body(job, dryRun=True)
            yield from (self.case(f"{name} of {length:,} bytes, {hook}", hook, sent) for hook in HOOKS)

    def policies(self) -> Iterator[Case]:
        namespaces = list(self._view.all(NAMESPACES).values())  # type: ignore[union-attr]
        for name, text in HOSTILE_POLICIES.items():
            kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
            sent = body(configmap("hostile", text), kind=kind)
            request = review.decode(sent)
            verdict = policy_review.verdict_on(
                request, policies=self._policies, namespaces=namespaces, now=datetime.min.replace(tzinfo=UTC)
            )
            assert verdict.after is None, name
            yield Case(f"policy: {name}", "/validate-policy", sent, review.encode(verdict.response))
