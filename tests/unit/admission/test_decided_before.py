"""What was decided about a job is decided about the same job again without asking, and no reply is another for it."""

import gc
import json
import weakref
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.bench.replies import cases
from tests.bench.replies.record import _policy as policy_set
from tests.support.jobs import changed, request
from tests.support.nodes import node
from tests.support.samples import sample
from webhook.admission import decided_before, pipelines
from webhook.admission.decided_before import DecidedBefore
from webhook.admission.pipelines import Hook
from webhook.admission.places import checksum
from webhook.api import review, written
from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.injections import Injection
from webhook.kit.context import Context
from webhook.kit.own_rules import Outcome, Unanswered
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import Action, InjectionSettings, RuleSettings
from webhook.policy.in_force import Policy, load_policies, load_policy
from webhook.rules import Rule, Violation

TODAY = date(2026, 3, 2)
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"tier": "1"}}}
OTHER_TEAM = TEAM | {"metadata": {"name": "team", "labels": {"tier": "2"}}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "pods", "namespace": "team"},
    "spec": {"hard": {"pods": "100"}},
    "status": {"hard": {"pods": "100"}, "used": {"pods": "0"}},
}
JOB = changed({"metadata.namespace": "team"})


class Asked:
    """A policy with one injection or rule, what remembers for it, and how often that was asked."""

    hook = "mutate"

    def __init__(self, look: Callable[[MPIJob, Context], object] = lambda *_: None, plugin: str = "") -> None:
        self.times = 0
        self.before = DecidedBefore()
        self.today = TODAY
        self._look = look
        self.policy = self._policy(plugin)

    def _policy(self, plugin: str) -> Policy:
        entry = Injection("asked", InjectionSettings, self._inject, since="0.1", plugin=plugin)
        return replace(load_policy(None), injections=((entry, InjectionSettings()),))

    def _inject(self, job: MPIJob, _: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
        self.times += 1
        self._look(job, ctx)
        patch.add(("metadata", "labels", "asked"), job.metadata.name)
        yield "asked"

    def known(self, view: ClusterView | None = None) -> None:
        """The job has come so often that it is known."""
        while self.again(view=view):
            pass

    def again(self, job: Any = JOB, view: ClusterView | None = None, **fields: Any) -> int:
        """How often it is asked about the job."""
        times = self.times
        asked, view = request(job, **fields), view or NothingKnown()
        how = {"today": self.today} if self.hook == "validate" else {}
        decision = decided(self.hook, self.before, asked, self.policy, view, **how)
        found, self.times = self.times - times, times
        assert reply(decision) == reply(decided(self.hook, pipelines, asked, self.policy, view, **how))
        return found


class AskedRule(Asked):
    """The same with a rule."""

    hook = "validate"

    def _policy(self, plugin: str) -> Policy:
        rule = Rule("asked", RuleSettings, self._check, since="0.1", plugin=plugin)
        return replace(load_policy(None), rules=((rule, RuleSettings(), Action.DENY),), injections=())

    def _check(self, job: MPIJob, _: RuleSettings, ctx: Context) -> Iterator[Violation]:
        self.times += 1
        self._look(job, ctx)
        yield Violation("spec", f"is wrong in {job.metadata.name}", fix="Mend it.")


hooks = pytest.mark.parametrize("hook", ["mutate", "validate"])
both = pytest.mark.parametrize("kind", [Asked, AskedRule])


def decided(
    hook: str, before: Any, asked: review.AdmissionRequest, policy: Policy, view: ClusterView, **how: Any
) -> pipelines.Decision:
    """By the pipelines, or by what remembers them."""
    if hook == "validate":
        how = {"today": TODAY, **how}
    decision: pipelines.Decision = getattr(before, hook)(asked, policy=policy, view=view, **how)
    return decision


def reply(decision: pipelines.Decision) -> bytes:
    return review.encode(decision.response("u"))


@both
def test_it_is_asked_twice(kind: type[Asked]) -> None:
    asked = kind()
    assert [asked.again() for _ in range(4)] == [1, 1, 0, 0]


@both
def test_a_job_that_came_long_ago_is_new(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_SEEN", 2)
    asked = kind()
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


def test_a_refusal_is_the_same_for_the_reply_the_log_and_the_metrics() -> None:
    asked = AskedRule()
    first, *others = (decided("validate", asked.before, request(JOB), asked.policy, NothingKnown()) for _ in range(3))
    assert first.denied
    for other in others:
        assert json.loads(review.encode(other.response("u-7")))["response"]["uid"] == "u-7"
        assert (reply(other), other.denied, other.refused_gpus) == (reply(first), first.denied, first.refused_gpus)


@both
@pytest.mark.parametrize(
    "change",
    [
        {"metadata.name": "other"},
        {"metadata.generateName": "train-"},
        {"metadata.namespace": "other"},
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
def test_it_is_asked_about_another_text(kind: type[Asked], change: dict[str, Any]) -> None:
    asked = kind()
    asked.known()
    assert asked.again(changed(change, JOB)) == 1


@both
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
def test_it_is_asked_where_something_else_is_another(kind: type[Asked], fields: dict[str, Any]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(Snapshot([TEAM]))
    assert asked.again(**{"view": Snapshot([TEAM]), **fields}) == 1


@both
def test_it_is_asked_under_another_policy(kind: type[Asked]) -> None:
    asked = kind()
    asked.known()
    asked.policy = replace(asked.policy, sources={"mode": "another"})
    assert asked.again() == 1


def test_it_is_asked_on_another_day() -> None:
    asked = AskedRule()
    asked.known()
    asked.today += timedelta(1)
    assert asked.again() == 1


def test_what_was_decided_is_no_reply_when_the_time_is_up() -> None:
    asked = AskedRule()
    asked.known()
    with pytest.raises(pipelines.DeadlineExceeded):
        decided("validate", asked.before, request(JOB), asked.policy, NothingKnown(), time_left=lambda: 0.01)


def test_what_the_api_server_gives_each_object_anew_does_not_count() -> None:
    asked = AskedRule()
    jobs = [
        changed(
            {
                "metadata.uid": f"u-{second}",
                "metadata.creationTimestamp": f"2026-03-02T09:30:0{second}Z",
                "metadata.managedFields": [{"manager": "kubectl", "time": f"2026-03-02T09:30:0{second}Z"}],
            },
            JOB,
        )
        for second in range(4)
    ]
    assert [asked.again(job) for job in jobs] == [1, 1, 0, 0]


@both
def test_who_manages_which_field_and_when_does_not_count(kind: type[Asked]) -> None:
    asked = kind()
    managed = [
        changed({"metadata.managedFields": [{"manager": "kubectl", "time": f"2026-03-02T09:30:0{second}Z"}]}, JOB)
        for second in range(4)
    ]
    assert [asked.again(job) for job in managed] == [1, 1, 0, 0]


def test_a_mutating_review_with_a_uid_is_another() -> None:
    asked = Asked()
    asked.known()
    assert asked.again(changed({"metadata.uid": "u-9"}, JOB)) == 1


def test_a_rule_that_looks_at_the_uid_is_asked() -> None:
    asked = AskedRule(lambda job, _: job.metadata.uid)
    assert [asked.again() for _ in range(4)] == [1] * 4


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
    place = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/resources/limits/cpu"
    record = {"training.openshift.io/injected": json.dumps({"launcher-resources": [f"{place} {checksum('wrong')}"]})}
    limits = {"cpu": "wrong"}
    for hook in ("mutate", "validate"):
        before = DecidedBefore()
        job = {"metadata.managedFields": [{"manager": "kub"}], "metadata.annotations": record}
        good = request(changed({**job, "Worker.template.spec.containers.0.resources.limits": limits}, JOB))
        for _ in range(3):
            same_reply(hook, before, good, known, NothingKnown())
        forged = bytes(good.object).replace(b'"kub"', managed.ljust(5))
        same_reply(hook, before, structs.replace(good, object=msgspec.Raw(forged)), known, NothingKnown())


@both
@pytest.mark.parametrize(
    ("job", "fields"),
    [
        (JOB, {"old": changed({"spec.slotsPerWorker": 7}, JOB)}),
        (changed({"metadata.annotations": {"long": "x" * decided_before.LARGEST}}, JOB), {}),
    ],
    ids=["update", "large"],
)
def test_what_is_not_kept(kind: type[Asked], job: dict[str, Any], fields: dict[str, Any]) -> None:
    asked = kind()
    for _ in range(4):
        asked.again(job, **fields)
    assert asked.before.size == 0


@both
def test_nothing_is_kept_of_plug_ins_or_after_a_long_list(kind: type[Asked]) -> None:
    asked = kind(plugin="theirs")
    assert [asked.again() for _ in range(4)] == [1] * 4
    many = Snapshot([TEAM | {"metadata": {"name": f"team-{number}"}} for number in range(40)])
    asked = kind(lambda _, ctx: ctx.view.all(NAMESPACES))
    assert [asked.again(view=many) for _ in range(4)] == [1] * 4


@pytest.mark.parametrize("action", ["deny", "warn"])
def test_nothing_is_kept_where_a_quota_counts_the_job(action: str) -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"resource-quota": {"action": action}}}))
    before, view = DecidedBefore(), Snapshot([TEAM, QUOTA])
    for uid in ("u-1", "u-2", "u-3"):
        asked = request(changed({"metadata.uid": uid}, JOB))
        reservation = decided("validate", before, asked, policy, view).reservation
        assert (reservation.uid if reservation else "") == (uid if action == "deny" else "")
    assert before.size == 0
    for _ in range(3):
        decided("validate", before, request(JOB), policy, Snapshot([TEAM]))
    assert before.size > 0, "without a quota it is"


def test_nothing_is_kept_of_own_rules_or_rights() -> None:
    own = {"id": "never", "expression": "false", "message": "never"}
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"custom": [own]}}))
    before = DecidedBefore()
    for _ in range(3):
        with pytest.raises(Unanswered) as asking:
            decided("validate", before, request(JOB), policy, NothingKnown())
        answers = {asking.value.question: (Outcome(holds=False),)}
        assert not decided("validate", before, request(JOB), policy, NothingKnown(), answers=answers).allowed
    annotations = {"training.openshift.io/exempt": "asked", "training.openshift.io/exempt-reason": "a test"}
    asked = AskedRule()
    job = changed({"metadata.annotations": annotations}, JOB)
    assert [asked.again(job) for _ in range(3)] == [1] * 3
    for granted in (True, False):
        known: dict[str, Any] = {"policy": asked.policy, "view": NothingKnown(), "today": TODAY}
        decision = asked.before.validate(request(job), granted={"asked": granted}, **known)
        assert decision.allowed is granted


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


def test_nothing_is_kept_where_an_injection_of_a_plug_in_is_required() -> None:
    asked = Asked(plugin="theirs")
    ((entry, _),) = asked.policy.injections
    required = ((entry, InjectionSettings(required=Action.WARN)),)
    policy = replace(asked.policy, injections=required, rules=())
    for _ in range(3):
        decided("validate", asked.before, request(JOB), policy, NothingKnown())
    assert (asked.times, asked.before.size) == (3, 0)


def test_many_findings_are_not_kept() -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"mode": "warn"}))
    limits = {f"example.com/r{number}": "wrong" for number in range(decided_before.MOST_FOUND + 1)}
    job = changed({"Worker.template.spec.containers.0.resources.limits": limits}, JOB)
    before = DecidedBefore()
    for _ in range(3):
        decision = decided("validate", before, request(job), policy, NothingKnown())
        assert len(decision.warned) > decided_before.MOST_FOUND
    assert before.size == 0


@both
def test_long_names_and_large_answers_are_not_kept(kind: type[Asked]) -> None:
    asked = kind()
    for _ in range(3):
        asked.again(username="\N{SNOWMAN}" * decided_before.LARGEST)
    annotations = {f"a{number}": "" for number in range(4000)}
    view = Snapshot([TEAM | {"metadata": {"name": "team", "annotations": annotations}}])
    large = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for _ in range(3):
        large.again(view=view)
    assert asked.before.size == large.before.size == 0


@both
def test_what_is_kept_in_place_of_another_is_counted_once(kind: type[Asked]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(Snapshot([TEAM]))
    size = asked.before.size
    for view in (Snapshot([OTHER_TEAM]), Snapshot([TEAM])):
        assert [asked.again(view=view) for _ in range(3)] == [1, 0, 0]
        assert asked.before.size == size


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each review that is noted."""
    noted: list[int] = []
    view = decided_before.AskedView
    monkeypatch.setattr(decided_before, "AskedView", lambda asked: noted.append(1) or view(asked))
    return noted


VIEWS = Snapshot([TEAM]), Snapshot([OTHER_TEAM])


@both
@pytest.mark.parametrize("why", ["cluster", "text", "too large"])
def test_what_is_noted_in_vain_is_not_noted_for_long(
    kind: type[Asked], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = _counted(monkeypatch)
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for number in range(9):
        labels = {"build": str(number)} if why == "text" else {}
        annotations = {"note": "x" * 20_000} if why == "too large" else {}
        job = changed({"metadata.labels": labels, "metadata.annotations": annotations}, JOB)
        with monkeypatch.context() as patch:
            patch.setattr(decided_before, "MOST_OF_ONE", 10_000)
            asked.again(job, view=VIEWS[number % 2 if why == "cluster" else 0])
    assert len(noted) == decided_before.MOST_IN_VAIN


@both
def test_what_is_recalled_between_is_noted_again_and_again(kind: type[Asked]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(VIEWS[0])
    for number in range(9):
        assert [asked.again(view=VIEWS[1 - number % 2]) for _ in range(2)] == [1, 0]


@both
def test_what_was_in_vain_is_counted_of_so_many_jobs(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_SEEN", 5)
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for number in range(20):
        for view in VIEWS * 2:
            asked.again(view=view, username=f"user-{number}")
        assert len(asked.before._in_vain) <= 5


def test_a_job_with_a_generated_name_is_new() -> None:
    asked = AskedRule()
    for number in range(4):
        asked.again(changed({"metadata.generateName": "train-", "metadata.name": f"train-{number}"}, JOB), name="")
    assert asked.before.size == 0


def test_a_policy_that_was_replaced_is_not_kept() -> None:
    asked = AskedRule()
    asked.known()
    gone = weakref.ref(asked.policy)
    asked.policy = load_policy(None)
    written.known.clear()  # what is known of a spec has its policy
    gc.collect()
    assert gone() is None


def test_a_job_that_is_too_large_with_its_managed_fields_gets_nothing() -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"job-size": {"maxBytes": 5000}}}))
    before = DecidedBefore()
    for padding in ("x", "x", "x", "x" * 5000):
        job = changed({"metadata.managedFields": [{"manager": padding}]}, JOB)
        decision = before.mutate(request(job), policy=policy, view=NothingKnown())
        assert bool(decision.skipped) is (len(padding) > 1)
        assert decided("validate", before, request(job), policy, NothingKnown()).allowed is (len(padding) == 1)


@hooks
def test_the_reply_names_the_policy(hook: Hook) -> None:
    policies = load_policies(json.dumps(cases.HEAD))
    known: dict[str, Any] = {"policies": policies, "view": NothingKnown(), "today": TODAY, "time_left": lambda: 9.0}
    before = DecidedBefore()
    whole = pipelines.decide(hook, request(JOB), **known)
    assert whole.policy
    for _ in range(3):
        again = pipelines.decide(hook, request(JOB), mutating=before.mutate, validating=before.validate, **known)
        assert (reply(again), again.policy) == (reply(whole), whole.policy)
    assert before.size


@both
def test_memory_has_a_bound(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_IN_ALL", 40_000)
    asked = kind()
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


def same_reply(
    hook: str, before: DecidedBefore, asked: review.AdmissionRequest, policy: Policy, view: ClusterView
) -> None:
    """The same as without memory, however often it comes."""
    expected = said(hook, pipelines, asked, policy, view)
    for _ in range(3):
        assert said(hook, before, structs.replace(asked), policy, view) == expected, bytes(asked.object)


def said(hook: str, by: Any, asked: review.AdmissionRequest, policy: Policy, view: ClusterView) -> Any:
    try:
        decision = decided(hook, by, asked, policy, view)
    except review.ReviewError as error:
        return str(error)
    decision.policy = policy.identity
    kept = structs.asdict(decision)
    for name in ("patch", "document", "said"):
        del kept[name]
    return reply(decision), kept


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
