"""What was injected into a job is injected into the same job again without asking, and no reply is another for it."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.bench.replies import cases
from tests.bench.replies.record import _policy as policy_set
from tests.support.jobs import GOOD, changed, request
from tests.support.nodes import node
from tests.support.samples import sample
from webhook.admission import injected_before, pipelines
from webhook.admission.injected_before import InjectedBefore
from webhook.api import review
from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.injections import Injection
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings
from webhook.policy.in_force import Policy, load_policies, load_policy

TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"tier": "1"}}}
OTHER_TEAM = TEAM | {"metadata": {"name": "team", "labels": {"tier": "2"}}}
JOB = changed({"metadata.namespace": "team"})


class Asked:
    """A policy with one injection, what remembers for it, and how often that was asked."""

    def __init__(self, look: Callable[[Context], object] = lambda _: None, plugin: str = "") -> None:
        self.times = 0
        self.before = InjectedBefore()
        self._look = look
        entry = Injection("asked", InjectionSettings, self._inject, since="0.1", plugin=plugin)
        self.policy = replace(load_policy(None), injections=((entry, InjectionSettings()),))

    def _inject(self, job: MPIJob, _: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
        self.times += 1
        self._look(ctx)
        patch.add(("metadata", "labels", "asked"), job.metadata.name)
        yield "asked"

    def known(self, view: ClusterView | None = None) -> None:
        """The job has come so often that it is known."""
        while self.again(view=view):
            pass

    def again(self, job: Any = JOB, view: ClusterView | None = None, **fields: Any) -> int:
        """How often it is asked about the job."""
        times = self.times
        asked = request(job, **fields)
        decision = self.before.mutate(asked, policy=self.policy, view=view or NothingKnown())
        found, self.times = self.times - times, times
        assert reply(decision) == reply(pipelines.mutate(asked, policy=self.policy, view=view or NothingKnown()))
        return found


def reply(decision: pipelines.Decision) -> bytes:
    return review.encode(decision.response("u"))


def test_an_injection_is_asked_twice() -> None:
    asked = Asked()
    assert [asked.again() for _ in range(4)] == [1, 1, 0, 0]


def test_a_job_that_came_long_ago_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injected_before, "MOST_SEEN", 2)
    asked = Asked()
    jobs = [changed({"metadata.name": name}, JOB) for name in ("a", "b", "c")]
    assert [asked.again(job) for job in jobs * 4] == [1] * 12


def test_the_reply_has_the_uid_of_its_request_and_the_log_line_what_was_injected() -> None:
    asked = Asked()
    decisions = [asked.before.mutate(request(JOB), policy=asked.policy, view=NothingKnown()) for _ in range(3)]
    for decision in decisions:
        said = json.loads(review.encode(decision.response("u-7")))["response"]
        assert (said["uid"], said["allowed"], said["patchType"]) == ("u-7", True, "JSONPatch")
        assert json.loads(b64decode(said["patch"]))[0]["path"] == "/metadata/labels"
        assert (decision.name, [*dict.fromkeys(decision.authors)]) == ("train", ["asked"])


@pytest.mark.parametrize(
    "change",
    [
        {"metadata.name": "other"},
        {"metadata.generateName": "train-"},
        {"metadata.namespace": "other"},
        {"metadata.uid": "u-9"},
        {"metadata.labels": {"a": "b"}},
        {"metadata.annotations": {"a": "b"}},
        {"metadata.annotations": None},
        {"metadata.finalizers": ["a/b"]},
        {"metadata.ownerReferences": [{"controller": False, "kind": "A", "name": "a"}]},
        {"spec.slotsPerWorker": 3},
        {"spec.unread": 3},
        {"status": {"conditions": []}},
    ],
    ids=str,
)
def test_it_is_asked_about_another_text(change: dict[str, Any]) -> None:
    asked = Asked()
    asked.known()
    assert asked.again(changed(change, JOB)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "bob"},
        {"userInfo": {"username": "alice", "groups": ["system:masters"]}},
        {"userInfo": {"username": "alice"}},
        {"name": "other"},
        {"namespace": "other"},
        {"view": Snapshot([OTHER_TEAM])},
        {"view": NothingKnown()},
    ],
    ids=["user", "groups", "no groups", "name", "namespace", "cluster", "no cluster"],
)
def test_it_is_asked_where_something_else_is_another(fields: dict[str, Any]) -> None:
    asked = Asked(lambda ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(Snapshot([TEAM]))
    assert asked.again(**{"view": Snapshot([TEAM]), **fields}) == 1


def test_it_is_asked_under_another_policy() -> None:
    asked = Asked()
    asked.known()
    asked.policy = replace(asked.policy, sources={"mode": "another"})
    assert asked.again() == 1


def test_who_manages_which_field_and_when_does_not_count() -> None:
    asked = Asked()
    managed = [
        changed({"metadata.managedFields": [{"manager": "kubectl", "time": f"2026-03-02T09:30:0{second}Z"}]}, JOB)
        for second in range(3)
    ]
    assert [asked.again(job) for job in (JOB, *managed)] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("job", "fields"),
    [
        (JOB, {"old": changed({"spec.slotsPerWorker": 7}, JOB)}),
        (changed({"metadata.unknown": 1}, JOB), {}),
        (changed({"metadata.annotations": {"long": "x" * injected_before.LARGEST}}, JOB), {}),
    ],
    ids=["update", "unknown field", "large"],
)
def test_what_is_not_kept(job: dict[str, Any], fields: dict[str, Any]) -> None:
    asked = Asked()
    times = {asked.again(job, **fields) for _ in range(4)}
    assert len(times) == 1


def test_nothing_is_kept_of_plug_ins_or_after_a_long_list() -> None:
    asked = Asked(plugin="theirs")
    assert [asked.again() for _ in range(4)] == [1] * 4
    many = Snapshot([TEAM | {"metadata": {"name": f"team-{number}"}} for number in range(40)])
    asked = Asked(lambda ctx: ctx.view.all(NAMESPACES))
    assert [asked.again(view=many) for _ in range(4)] == [1] * 4


def test_a_job_that_is_too_large_with_its_managed_fields_gets_nothing() -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"job-size": {"maxBytes": 5000}}}))
    before = InjectedBefore()
    for padding in ("x", "x", "x", "x" * 5000):
        job = changed({"metadata.managedFields": [{"manager": padding}]}, JOB)
        decision = before.mutate(request(job), policy=policy, view=NothingKnown())
        assert bool(decision.skipped) is (len(padding) > 1)


def test_the_reply_names_the_policy() -> None:
    policies = load_policies(json.dumps(cases.HEAD))
    known: dict[str, Any] = {"policies": policies, "view": NothingKnown(), "today": None, "time_left": lambda: 9.0}
    before = InjectedBefore()
    whole = pipelines.decide("mutate", request(JOB), **known)
    assert whole.policy
    for _ in range(3):
        again = pipelines.decide("mutate", request(JOB), injecting=before.mutate, **known)
        assert (reply(again), again.policy) == (reply(whole), whole.policy)


def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injected_before, "MOST_IN_ALL", 40_000)
    asked = Asked()
    for number in range(50):
        for _ in range(2):
            asked.again(changed({"metadata.name": f"job-{number}"}, JOB))
        assert 0 < asked.before.size <= 40_000
    assert asked.again(changed({"metadata.name": "job-49"}, JOB)) == 0
    assert asked.again(changed({"metadata.name": "job-0"}, JOB)) == 1


@pytest.fixture(scope="module")
def drawn() -> tuple[list[Policy], list[Snapshot]]:
    """Policies of any namespace, and clusters."""
    return [policy_set(text).for_any_namespace() for text in cases.policies()], [
        Snapshot(found) for found in cases.clusters()
    ]


@pytest.mark.parametrize("part", range(4))
def test_no_reply_is_another_for_what_came_before(part: int, drawn: tuple[list[Policy], list[Snapshot]]) -> None:
    policies, views = drawn
    before = InjectedBefore()
    for number, case in enumerate(cases.cases(sample(200, 2000), policies=len(policies), clusters=len(views))):
        if number % 4 != part or case["old"]:
            continue
        for view in (*views, *views):
            for policy in (policies[case["policy"]], policies[0]):
                same_reply(before, request(case["job"], username=case["user"]), policy, view)


# Facts that injections look at, and nodes of many shapes.
ZONES = [node(f"n{number}", {"topology.kubernetes.io/zone": f"z{number}"}) for number in range(20)]
GPUS = [node("g", {"nvidia.com/gpu.present": "true"}, ["nvidia.com/gpu:NoSchedule"], **{"nvidia.com/gpu": "8"})]
CLUSTERS = [Snapshot([]), Snapshot([TEAM]), Snapshot([OTHER_TEAM, *ZONES]), Snapshot([TEAM, *GPUS])]
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


@given(st.lists(REVIEWS, min_size=2, max_size=12))
def test_any_jobs_one_after_the_other(reviews: list[Any]) -> None:
    before = InjectedBefore()
    for metadata, slots, username, policy, view in reviews:
        job = changed({"spec.slotsPerWorker": slots}) | {"metadata": metadata}
        same_reply(before, request(job, username=username), policy, view)


def same_reply(before: InjectedBefore, asked: review.AdmissionRequest, policy: Policy, view: ClusterView) -> None:
    """The same as without memory, however often it comes."""
    expected = said(pipelines.mutate, asked, policy, view)
    for _ in range(3):
        assert said(before.mutate, structs.replace(asked), policy, view) == expected, bytes(asked.object)


def said(mutate: Any, asked: review.AdmissionRequest, policy: Policy, view: ClusterView) -> Any:
    try:
        decision = mutate(asked, policy=policy, view=view)
    except review.ReviewError as error:
        return str(error)
    decision.policy = policy.identity
    logged = decision.name, decision.authors, decision.warned, decision.skipped, decision.told, decision.news
    return reply(decision), logged


def test_an_object_that_is_no_json_is_refused_after_good_ones() -> None:
    before, policy = InjectedBefore(), load_policy(None)
    for _ in range(2):
        before.mutate(request(JOB), policy=policy, view=NothingKnown())
    broken = request(JOB)
    broken.object = msgspec.Raw(bytes(broken.object)[:-1])
    with pytest.raises(review.ReviewError):
        review.confirm(broken)
    same_reply(before, broken, policy, NothingKnown())
    assert GOOD["metadata"]["name"] == "train"
