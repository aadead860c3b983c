"""No reply is another for what came before, whatever that was."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.bench.replies import cases
from tests.bench.replies.record import _policy as policy_set
from tests.support.asked import (
    JOB,
    OTHER_TEAM,
    QUOTA,
    TEAM,
    decided,
    hooks,
    same_reply,
)
from tests.support.jobs import changed, request
from tests.support.nodes import node
from tests.support.samples import sample
from webhook.admission.decided_before import DecidedBefore
from webhook.api import review
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import Policy, load_policy


@pytest.mark.parametrize("uid", [b"123456789", b'"1234"67', b'"12345\xff7"', b'"","a":""'], ids=str)
def test_a_uid_that_no_api_server_writes_is_read_after_good_ones(uid: bytes) -> None:
    before, policy = DecidedBefore(), load_policy(None)
    good = request(changed({"metadata.uid": "1234567"}, JOB))
    for _ in range(3):
        same_reply("validate", before, good, policy, NothingKnown())
    broken = structs.replace(good, object=msgspec.Raw(bytes(good.object).replace(b'"1234567"', uid)))
    same_reply("validate", before, broken, policy, NothingKnown())


@pytest.mark.parametrize("policy", [{}, {"topology": {"required": "deny"}}], ids=str)
@pytest.mark.parametrize("managed", [b'"\xff"', b"1e400", b'"kub', b"[[[]]", b'"k","'], ids=str)
def test_managed_fields_that_no_api_server_writes(managed: bytes, policy: dict[str, Any]) -> None:
    known = load_policy(json.dumps(cases.HEAD | {"injections": policy}))
    limits = {"cpu": "wrong"}
    for hook in ("mutate", "validate"):
        before = DecidedBefore()
        job = {"metadata.managedFields": [{"manager": "kub"}]}
        good = request(changed({**job, "Worker.template.spec.containers.0.resources.limits": limits}, JOB))
        for _ in range(3):
            same_reply(hook, before, good, known, NothingKnown())
        forged = bytes(good.object).replace(b'"kub"', managed.ljust(5))
        same_reply(hook, before, structs.replace(good, object=msgspec.Raw(forged)), known, NothingKnown())


@pytest.mark.parametrize("part", ["managedFields", "annotations"])
def test_what_is_no_text_in_a_job_of_a_wrong_shape(part: str) -> None:
    values: dict[str, Any] = {"managedFields": [{"manager": "mine"}], "annotations": {"a": "mine"}}
    job = changed({"spec.slotsPerWorker": "two", f"metadata.{part}": values[part]}, JOB)
    before, policy = DecidedBefore(), load_policy(None)
    for _ in range(3):
        same_reply("validate", before, request(job), policy, NothingKnown())
    for wrong in (b'"mine', b"\xff", b'"'):
        broken = request(job)
        broken.object = msgspec.Raw(bytes(broken.object).replace(b'"mine"', b'"' + wrong + b'"'))
        same_reply("validate", before, broken, policy, NothingKnown())


@pytest.mark.parametrize(
    ("written", "twice"),
    [
        (b'"name":"train"', b'"name":5,"name":"train"'),
        (b'"metadata":{', b'"metadata":{"name":5},"metadata":{'),
        (b'"kind":"MPIJob"', b'"kind":5,"kind":"MPIJob"'),
    ],
)
def test_a_key_that_is_there_twice_spoils_nothing(written: bytes, twice: bytes) -> None:
    """What decides reads the first of them, and what remembers might read the last."""
    for hook in ("mutate", "validate"):
        before, policy = DecidedBefore(), load_policy(None)
        forged = request(JOB)
        forged.object = msgspec.Raw(bytes(forged.object).replace(written, twice, 1))
        for asked in (forged, request(JOB), forged):
            same_reply(hook, before, asked, policy, NothingKnown())


@pytest.mark.parametrize("settings", [{"maxBytes": 1400}, {"maxBytes": 1400, "action": "warn"}, {"maxNested": 30}])
def test_what_is_said_of_the_size_is_said_with_other_managed_fields_too(settings: dict[str, Any]) -> None:
    before = DecidedBefore()
    for mode in ("enforce", "warn", "audit"):
        policy = load_policy(json.dumps(cases.HEAD | {"mode": mode, "rules": {"job-size": settings}}))
        for padding in ("x" * 2000, "[" * 2000, "x", "x"):
            job = changed({"metadata.managedFields": [{"manager": padding}]}, JOB)
            for hook in ("mutate", "validate"):
                same_reply(hook, before, request(job), policy, NothingKnown())


def test_a_job_that_is_too_large_with_its_managed_fields_gets_nothing() -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"job-size": {"maxBytes": 5000}}}))
    before = DecidedBefore()
    for padding in ("x", "x", "x", "x" * 5000):
        job = changed({"metadata.managedFields": [{"manager": padding}]}, JOB)
        decision = before.mutate(request(job), policy=policy, view=NothingKnown())
        assert bool(decision.skipped) is (len(padding) > 1)
        assert decided("validate", before, request(job), policy, NothingKnown()).allowed is (len(padding) == 1)


@pytest.fixture(scope="module")
def drawn() -> tuple[list[Policy], list[Snapshot]]:
    """Policies of any namespace, and clusters."""
    return [policy_set(text).for_any_namespace() for text in cases.policies()], [
        Snapshot(found) for found in cases.clusters()
    ]


@hooks
@pytest.mark.parametrize("part", range(4))
def test_no_reply_is_another_for_what_came_before(
    part: int, hook: str, drawn: tuple[list[Policy], list[Snapshot]]
) -> None:
    policies, views = drawn
    before = DecidedBefore()
    for number, case in enumerate(cases.cases(sample(200, 2000), policies=len(policies), clusters=len(views))):
        if number % 4 != part or case["old"]:
            continue
        for view in (*views, *views):
            for policy in (policies[case["policy"]], policies[0]):
                same_reply(hook, before, request(case["job"], username=case["user"]), policy, view)


# Facts that injections and rules look at, and nodes of many shapes.
OWNER = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "a", "uid": "u-1", "controller": True}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "a", "namespace": "team", "ownerReferences": [OWNER]},
}
ZONES = [node(f"n{number}", {"topology.kubernetes.io/zone": f"z{number}"}) for number in range(20)]
GPUS = [node("g", {"nvidia.com/gpu.present": "true"}, ["nvidia.com/gpu:NoSchedule"], **{"nvidia.com/gpu": "8"})]
CLUSTERS = [
    Snapshot([]),
    Snapshot([TEAM]),
    Snapshot([TEAM, QUOTA]),
    Snapshot([TEAM, SERVICE]),
    Snapshot([OTHER_TEAM, *ZONES]),
    Snapshot([TEAM, *GPUS]),
]
POLICIES = [
    load_policy(None),
    load_policy(json.dumps(cases.HEAD | {"injectionWarnings": "each", "injections": {"topology": {"keys": ["a"]}}})),
    load_policy(json.dumps(cases.WRITTEN)),
]
NAMED = st.fixed_dictionaries(
    {"namespace": st.sampled_from(["team", "other"])},
    optional={
        "name": st.sampled_from(["a", "b", "Not A Name"]),
        "generateName": st.sampled_from(["a-", "b-"]),
        "uid": st.sampled_from(["u-1", "u-2"]),
        "labels": st.sampled_from([None, {}, {"kueue.x-k8s.io/queue-name": "q"}, {"sidecar.istio.io/inject": "true"}]),
        "annotations": st.sampled_from([None, {}, {"training.openshift.io/skip": "topology"}, {"a": "b"}]),
        "managedFields": st.sampled_from([[], [{"manager": "a"}], [{"manager": "b"}]]),
        "ownerReferences": st.sampled_from([None, [{"controller": True, "kind": "A", "name": "a"}]]),
    },
)
REVIEWS = st.tuples(
    NAMED, st.sampled_from([2, 3]), st.sampled_from(["alice", "bob"]), st.sampled_from(POLICIES),
    st.sampled_from(CLUSTERS),
)  # fmt: skip


@hooks
@given(reviews=st.lists(REVIEWS, min_size=2, max_size=12))
def test_any_jobs_one_after_the_other(hook: str, reviews: list[Any]) -> None:
    before = DecidedBefore()
    for metadata, slots, username, policy, view in reviews:
        job = changed({"spec.slotsPerWorker": slots}) | {"metadata": metadata}
        same_reply(hook, before, request(job, username=username), policy, view)


@hooks
def test_an_object_that_is_no_json_is_refused_after_good_ones(hook: str) -> None:
    before, policy = DecidedBefore(), load_policy(None)
    for _ in range(2):
        decided(hook, before, request(JOB), policy, NothingKnown())
    for end in (b"", b"x"):
        broken = request(JOB)
        broken.object = msgspec.Raw(bytes(broken.object)[:-1] + end)
        with pytest.raises(review.ReviewError):
            review.confirm(broken)
        same_reply(hook, before, broken, policy, NothingKnown())
