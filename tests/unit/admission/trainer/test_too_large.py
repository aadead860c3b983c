"""TrainJobs and runtimes that are too large: refused before they are put together, whatever the policy says."""

import copy
from typing import Any

import pytest

from tests.support.steps import calls_of
from tests.support.trainer import (
    NODE,
    TODAY,
    Manifest,
    Runtimes,
    decide,
    patch,
    pods,
    refused,
    review,
    runtime,
    train_job,
)
from webhook.admission import too_large
from webhook.admission.trainer import pipeline
from webhook.api import trainer
from webhook.policy.in_force import load_policies
from webhook.predict.trainer.size import MOST_CONTAINERS, MOST_PATCHED, MOST_REPLICATED_JOBS

# Of a review. Most are of `len` and its like, with some 50 ns; each review has 250 ms.
MOST_CALLS = 2_000_000
POLICIES = load_policies(None)
ALONE = "Stay within that: no policy allows more."
IN_RUNTIME = "spec.template.spec.replicatedJobs"


def with_jobs(count: int, **job: Any) -> Manifest:
    """A runtime with so many replicated jobs besides its own two."""
    found = runtime()
    jobs = found["spec"]["template"]["spec"]["replicatedJobs"]
    jobs += [{"name": f"x{number}", **job} for number in range(count)]
    return found


def template(pod: Manifest, **metadata: Any) -> Manifest:
    """Fields of a replicated job with these pods."""
    return {"template": {"spec": {"template": {"metadata": metadata, "spec": pod}}}}


def one(**container: Any) -> Manifest:
    """A pod with one container."""
    return {"containers": [{"name": "c", "image": "registry.example.com/a:latest", **container}]}


def patched(*entries: tuple[str, Manifest], patches: int = 1) -> Manifest:
    """A TrainJob whose patches have these pods of replicated jobs each."""
    inner = [{"name": name, "template": {"spec": {"template": {"spec": pod}}}} for name, pod in entries]
    one = patch("node", {})
    one["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"] = inner
    return train_job(patches=[copy.deepcopy(one) for _ in range(patches)])


def containers(count: int) -> list[Manifest]:
    return [{"name": f"c{number}", "image": "registry.example.com/a:1"} for number in range(count)]


def env(count: int) -> list[Manifest]:
    return [{"name": f"E{number}", "value": "v"} for number in range(count)]


@pytest.mark.parametrize("kind", [trainer.RUNTIME, trainer.CLUSTER_RUNTIME])
def test_a_runtime_has_so_many_replicated_jobs(kind: str) -> None:
    most = {**with_jobs(MOST_REPLICATED_JOBS - 2), "kind": kind}
    assert "job-size" not in {rule for *_, rule in refused(decide(most))}
    more = {**with_jobs(MOST_REPLICATED_JOBS - 1), "kind": kind}
    message = "too large to judge: 101 replicatedJobs, at most 100"
    decision = decide(more)
    assert refused(decision) == [(IN_RUNTIME, message, ALONE, "job-size")]
    assert decision.message.startswith(f'{kind} "deepspeed" is refused, 1 problem to mend:')


def test_a_job_patches_only_so_many() -> None:
    entries = [("node", {"hostNetwork": False})] * 9
    assert decide(patched(*entries, patches=10), runtime()).allowed
    message = f"too large to judge: {10 + 100} patches and replicatedJobs in these, at most {MOST_PATCHED}"
    assert refused(decide(patched(*entries, entries[0], patches=10), runtime())) == [
        ("spec.runtimePatches", message, ALONE, "job-size")
    ]
    assert [path for path, *_ in refused(decide(patched(patches=101), runtime()))] == ["spec.runtimePatches"]


def test_containers_of_all_templates() -> None:
    """The rule counts those of each."""
    base = with_jobs(2, **template({"containers": containers(199)}))
    assert {message for _, message, *_ in refused(decide(base))} == {
        "too large to judge: 199 containers, at most 50",
    }
    pods(base, NODE)["initContainers"] = containers(1)
    message = f"too large to judge: 401 containers, at most {MOST_CONTAINERS}"
    assert refused(decide(base)) == [(IN_RUNTIME, message, ALONE, "job-size")]
    assert decide(train_job(numNodes=300), base).skipped == pipeline.RUNTIME_TOO_LARGE
    entries = [("node", {"containers": containers(200)}), ("launcher", {"initContainers": containers(201)})]
    assert refused(decide(patched(*entries), runtime())) == [("spec.runtimePatches", message, ALONE, "job-size")]


def test_bytes_of_other_pods() -> None:
    words = ["x" * 100_000, "y" * 31_000]
    most, more = with_jobs(1, **template(one(args=words * 2))), with_jobs(2, **template(one(args=words)))
    assert "at most 262,144" not in str(refused(decide(most)))
    ((path, message, fix, rule),) = refused(decide(more))
    assert (path, fix, rule) == (IN_RUNTIME, ALONE, "job-size")
    assert message.endswith("bytes of other pods than launcher and nodes, at most 262,144")
    patching = [("x0", {"nodeSelector": {"a": "b" * 200_000}}), ("x1", {"nodeSelector": {"a": "b" * 200_000}})]
    ((path, again, *_),) = refused(decide(patched(*patching), with_jobs(2)))
    assert path == "spec.runtimePatches"
    assert again.endswith("at most 262,144")


def test_values_to_merge() -> None:
    allowed = "rules: {job-size: {maxEnv: 2000}}"
    assert decide(train_job(env=env(2000)), runtime(), policy=allowed).allowed
    message = "too large to judge: more than 50,000 values to merge into the runtime"
    assert refused(decide(train_job(env=env(26_000)), runtime())) == [("spec", message, ALONE, "job-size")]


@pytest.mark.parametrize("action", ["warn", "audit", "off"])
def test_no_action_of_the_rule_helps(action: str) -> None:
    policy = f"rules: {{job-size: {{action: {action}}}}}"
    assert not decide(with_jobs(200), policy=policy).allowed


@pytest.mark.parametrize(("mode", "field"), [("warn", "warned"), ("audit", "audited")])
def test_where_everything_is_let_through_these_are_too(mode: str, field: str) -> None:
    decision = decide(with_jobs(200), policy=f"mode: {mode}")
    assert decision.allowed
    assert [finding.rule for finding in getattr(decision, field)] == ["job-size"]


def test_too_large_a_runtime_of_the_cluster_is_as_one_that_is_not_known() -> None:
    decision = decide(train_job(numNodes=300), with_jobs(MOST_REPLICATED_JOBS))
    assert (decision.allowed, decision.skipped) == (True, pipeline.RUNTIME_TOO_LARGE)


def test_other_training_is_left_alone() -> None:
    base = with_jobs(200)
    base["spec"]["mlPolicy"] = {"torch": {}}
    unread = {**train_job(), "x": [[]] * 50_001}
    assert decide(base).skipped == pipeline.NOT_OF_MPI
    assert decide(patched(patches=200), base).skipped == pipeline.NOT_OF_MPI
    assert decide(patched(patches=200)).skipped == pipeline.RUNTIME_UNKNOWN
    assert decide({**base, "x": [[]] * 50_001}).skipped == too_large.INJECT_NOTHING
    assert decide(unread, base).skipped == too_large.INJECT_NOTHING
    assert decide({**unread, "spec": []}, runtime()).skipped == too_large.INJECT_NOTHING


@pytest.mark.parametrize("manifest", [train_job(), runtime(), runtime(trainer.RUNTIME)], ids=lambda each: each["kind"])
def test_what_no_api_server_could_store_is_refused_unread(manifest: Manifest) -> None:
    for more, message in (([[]] * 60_000, "mappings and lists, at most 50,000"), ("x" * 1_600_000, "bytes, at most")):
        ((path, told, _, rule),) = refused(decide({**manifest, "x": more}, runtime()))
        assert (path, rule) == ("spec", "job-size")
        assert message in told


class TestUpdates:
    @pytest.mark.parametrize("stored", [with_jobs(200), patched(patches=200)], ids=lambda each: each["kind"])
    def test_of_what_was_too_large_before(self, stored: Manifest) -> None:
        labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}, "finalizers": []}}
        decision = decide(labelled, runtime(), old=stored)
        assert (decision.allowed, decision.skipped) == (True, too_large.AS_STORED)
        assert decide(stored, runtime(), old=stored).allowed

    def test_a_job_is_held_back_and_let_go(self) -> None:
        stored = patched(patches=200)
        suspended = {**stored, "spec": {**stored["spec"], "suspend": True}}
        assert decide(suspended, runtime(), old=stored).skipped == too_large.AS_STORED

    @pytest.mark.parametrize("count", [199, 200, 201])
    def test_its_pods_stay_as_they_are(self, count: int) -> None:
        other = patched(("node", {"hostNetwork": True}), patches=count)
        assert not decide(other, runtime(), old=patched(patches=200)).allowed

    def test_it_may_become_small_enough(self) -> None:
        assert decide(train_job(), runtime(), old=patched(patches=200)).allowed
        assert [rule for *_, rule in refused(decide(train_job(numNodes=300), runtime(), old=patched(patches=200)))] == [
            "worker-count"
        ]
        unread = {**train_job(numNodes=300), "x": [[]] * 60_000}
        assert [rule for *_, rule in refused(decide(train_job(numNodes=300), runtime(), old=unread))] == [
            "worker-count"
        ]

    def test_it_may_not_grow(self) -> None:
        assert not decide(patched(patches=200), runtime(), old=train_job()).allowed

    @pytest.mark.parametrize("large", [with_jobs(200), {**train_job(), "x": [[]] * 60_000}])
    def test_one_that_is_being_deleted_loses_its_finalizers(self, large: Manifest) -> None:
        going = {**large, "metadata": {**large["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert decide(going, runtime(), old=going).allowed
        assert not decide(
            {**going, "spec": {**going["spec"], "trainer": {"numNodes": 500}}}, runtime(), old=train_job()
        ).allowed


def deep(depth: int) -> Manifest:
    found: Manifest = {"a": "b"}
    for _ in range(depth):
        found = {"a": found}
    return found


def with_others(pod: Manifest, **metadata: Any) -> Manifest:
    """A runtime with as many other pods as are looked at."""
    return with_jobs(20, **template(pod, **metadata))


def claims(count: int) -> Manifest:
    """A runtime with so many claims of its own, and as many replicated jobs of one name as it may have."""
    found = with_jobs(MOST_REPLICATED_JOBS - 2)
    for each in found["spec"]["template"]["spec"]["replicatedJobs"][2:]:
        each["name"] = "node"
    templates = [{"metadata": {"name": f"c{number}"}} for number in range(count)]
    found["spec"]["template"]["spec"]["volumeClaimPolicies"] = [{"templates": templates}]
    return found


FAULTY = [
    {**each, "image": "a:latest", "securityContext": {"privileged": True}, "env": env(10)} for each in containers(19)
]
MANY = [("node", {"containers": [{}]})]
# Of each the object, and the runtime of a TrainJob.
HOSTILE: dict[str, tuple[Manifest, Manifest]] = {
    "containers of one job": (patched(("node", {"containers": [{}] * 20_000}), *MANY * 3500), runtime()),
    "containers within the bound": (patched(("node", {"containers": containers(300)}), *MANY * 98), runtime()),
    "many patches": (patched(("node", {"containers": [{}] * 2900}), patches=16), runtime()),
    "volumes": (
        patched(("node", {"volumes": [{"name": f"{n}"} for n in range(40_000)]}), *[("node", {"volumes": [{}]})] * 98),
        runtime(),
    ),
    "a nodeSelector": (
        patched(
            ("node", {"nodeSelector": {f"k{n}": "v" for n in range(80_000)}}),
            *[("node", {"nodeSelector": {"a": "b"}})] * 98,
        ),
        runtime(),
    ),
    "fields of a long name": (patched(("node", {"k" * 300_000: {f"{n}": {} for n in range(40_000)}})), runtime()),
    "deep": (patched(*[("node", deep(400))] * 98), runtime()),
    "env": (train_job(env=env(40_000)), runtime()),
    "env within the bound": (train_job(env=env(24_000)), runtime()),
    "resources": (train_job(resourcesPerNode={"limits": {f"r{n}": "1" for n in range(80_000)}}), runtime()),
    "words": (train_job(args=["a"] * 250_000), runtime()),
    "replicated jobs": (with_jobs(45_000), runtime()),
    "containers of replicated jobs": (with_jobs(98, **template(one())), runtime()),
    "faulty containers": (with_others({"containers": FAULTY}), runtime()),
    "claims": (claims(15_000), runtime()),
    "mounts": (
        with_others(one(volumeMounts=[{"name": f"v{n}", "mountPath": f"/{n}"} for n in range(280)])),
        runtime(),
    ),
    "volumes of others": (
        with_others({**one(), "volumes": [{"name": f"_{n}", "hostPath": {"path": "x"}} for n in range(250)]}),
        runtime(),
    ),
    "tolerations": (with_others({**one(), "tolerations": [{"key": "a b", "operator": "x"}] * 360}), runtime()),
    "resources of others": (
        with_others(one(resources={"limits": {f"x/r_{n}": "1.5" for n in range(650)}})),
        runtime(),
    ),
    "labels of others": (
        with_others(one(), labels={f"_{n}": "a b" for n in range(440)}, annotations={f"_{n}": "v" for n in range(440)}),
        runtime(),
    ),
    "a runtime of many jobs": (patched(*[("x", {})] * 5000), with_jobs(8000)),
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_megabyte_takes_only_so_many_steps(shape: str) -> None:
    manifest, base = HOSTILE[shape]
    older = copy.deepcopy(manifest)
    older["metadata"]["labels"] = {"a": "b"}
    older["spec"]["mlPolicy"] = {**older["spec"].get("mlPolicy", {}), "numNodes": 2}
    view = Runtimes(base)
    for changes in ({}, {"old": older}):
        decide(train_job(), base, view=view)
        request = review(manifest, **changes)
        assert len(bytes(request.object)) < 1_500_000
        assert calls_of(lambda: pipeline.decide(request, policies=POLICIES, view=view, today=TODAY)) < MOST_CALLS  # noqa: B023
