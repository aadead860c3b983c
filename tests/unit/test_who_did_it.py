"""Nobody is refused for what only this service wrote: every injection under every level of Pod Security."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given

from tests.support.any_job import any_job
from tests.support.injecting import examples
from tests.support.mender import cases, facts, places
from tests.support.mender.breaks import BREAKS
from tests.support.samples import sample
from tests.support.strategies import PROPERTY
from webhook.admission import attribution
from webhook.cli import job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.cluster.snapshot import Snapshot
from webhook.injections import REGISTRY as INJECTIONS
from webhook.policy.in_force import PolicySet, load_policies
from webhook.rules import REGISTRY

Json = dict[str, Any]
# Read here: a module of tests is not imported in the middle of a property.
EXAMPLES = examples()
ENABLED = [(), *((name,) for name in INJECTIONS), tuple(INJECTIONS)]
NAMESPACES = ("open", "baseline", "restricted", facts.LIMITED, "quota", "queued")


@cache
def policy(*enabled: str, tight: bool = False) -> PolicySet:
    """Every rule refuses, and these injections are on, as in their examples."""
    rules = {rule: {"action": "deny", **(facts.TIGHT.get(rule, {}) if tight else {})} for rule in REGISTRY}
    injections = {name: {**EXAMPLES[name].settings, "enabled": True} for name in enabled}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return load_policies(json.dumps({**head, "rules": rules, "injections": injections}))


@cache
def cluster() -> Snapshot:
    return Snapshot(facts.objects())


def blamed(job: Mapping[str, Any], chosen: PolicySet, namespace: str) -> Iterator[tuple[str, str]]:
    """(rule, what it says) of each finding about a field that is not in the job as it was submitted."""
    manifest = Manifest("job.yaml", json.loads(json.dumps(job)))
    verdict = job_check.check(manifest, JobWorld(cluster(), instead=chosen), namespace=namespace)
    submitted = manifest.created_in(namespace)
    for finding in (*verdict.validation.denied, *verdict.validation.warned):
        path = places.parse(finding.violation.path)
        if "which the injection " in finding.violation.message:
            continue  # whoever wrote it is named
        if places.get(verdict.mutation.document, path) is not None and places.get(submitted, path) is None:
            yield finding.rule, f"{finding.violation.path}: {finding.sentence}"


def jobs() -> list[Json]:
    """Those of the corpus, those of the examples of injections, and bad ones."""
    few = [cases.corpus()[name] for name in cases.FEW]
    bad = [cases.broken(each, few[index % len(few)]) for index, each in enumerate(BREAKS)]
    return [*cases.corpus().values(), *(dict(example.job) for example in EXAMPLES.values()), *bad]


@pytest.mark.parametrize("tight", sample([True], [False, True]), ids={False: "usual", True: "tight"}.get)
@pytest.mark.parametrize("enabled", sample([(), tuple(INJECTIONS)], ENABLED), ids=",".join)
def test_no_finding_is_about_what_only_we_wrote(enabled, tight):
    chosen, every = policy(*enabled, tight=tight), jobs()
    offset = len(enabled) and list(INJECTIONS).index(enabled[0])
    found = {
        text
        for index, namespace in enumerate(NAMESPACES)
        for job in every[(index + offset) % len(NAMESPACES) :: len(NAMESPACES)]
        for _, text in blamed(job, chosen, namespace)
    }
    assert found == set()


@PROPERTY
@given(job=any_job())
def test_whatever_the_job_is(job):
    chosen = policy(*INJECTIONS)
    for namespace in NAMESPACES[:3]:
        assert list(blamed({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", **job}, chosen, namespace)) == []


def test_who_wrote_it_is_named(monkeypatch):
    chosen = policy("node-selector")
    assert list(blamed(jobs()[0], chosen, "open")) == []
    monkeypatch.setattr(attribution, "named", lambda found, *_: found)
    assert {rule for rule, _ in blamed(jobs()[0], chosen, "open")} == {"accelerator-available"}
