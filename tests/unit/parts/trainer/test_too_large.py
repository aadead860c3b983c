"""TrainJobs and runtimes that are too large are rejected, regardless of the action of the rule `job-size`.

They are rejected before the job's patches are merged into its runtime.
"""

from typing import Any

import pytest

from tests.support.kueue_objects import config
from tests.support.trainer import Manifest, Runtimes, decide, patch, refused, runtime, train_job
from webhook.admission import too_large
from webhook.cluster.snapshot import Snapshot
from webhook.parts.trainer import kinds

FIX = "Stay within that: no policy allows more."
IN_RUNTIME = "spec.template.spec.replicatedJobs"
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
UNREAD = {**train_job(), "x": [[]] * 60_000}


class WithKueue(Runtimes):
    def all(self, resource: Any) -> Any:
        return Snapshot([config()]).all(resource)


def with_jobs(count: int, **job: Any) -> Manifest:
    """A runtime with this number of additional replicated jobs."""
    manifest = runtime()
    jobs = manifest["spec"]["template"]["spec"]["replicatedJobs"]
    jobs += [{"name": f"x{number}", **job} for number in range(count)]
    return manifest


def template(spec: Manifest) -> Manifest:
    """The template of a replicated job with this pod spec."""
    return {"template": {"spec": {"template": {"spec": spec}}}}


def pod(**container: Any) -> Manifest:
    return {"containers": [{"name": "c", "image": "registry.example.com/a:latest", **container}]}


def patched(**specs: Manifest) -> Manifest:
    """A TrainJob with a patch for the pods of these replicated jobs."""
    patched = patch("node", {})
    jobs = [{"name": name, **template(spec)} for name, spec in specs.items()]
    patched["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"] = jobs
    return train_job(patches=[patched])


def test_other_pods_with_too_many_bytes_are_rejected() -> None:
    words = ["x" * 100_000, "y" * 31_000]
    most, more = with_jobs(1, **template(pod(args=words * 2))), with_jobs(2, **template(pod(args=words)))
    assert "at most 262,144" not in str(refused(decide(most)))
    ((path, message, fix, rule),) = refused(decide(more))
    assert (path, fix, rule) == (IN_RUNTIME, FIX, "job-size")
    assert message.endswith("bytes of other pods than launcher and nodes, at most 262,144")
    large = {"nodeSelector": {"a": "b" * 200_000}}
    ((path, message, *_),) = refused(decide(patched(x0=large, x1=large), with_jobs(2)))
    assert path == "spec.runtimePatches"
    assert message.endswith("at most 262,144")


def test_patch_with_too_many_values_is_rejected() -> None:
    env = [{"name": f"E{number}", "value": "v"} for number in range(2000)]
    assert decide(train_job(env=env), runtime()).allowed
    message = "too large to judge: more than 50,000 values to merge into the runtime"
    job = patched(node={"nodeSelector": {f"k{number}": "v" for number in range(50_000)}})
    assert refused(decide(job, runtime())) == [("spec", message, FIX, "job-size")]


@pytest.mark.parametrize("action", ["warn", "audit", "off"])
def test_action_of_the_rule_job_size_is_ignored(action: str) -> None:
    policy = f"rules: {{job-size: {{action: {action}}}}}"
    assert not decide(UNREAD, runtime(), policy=policy).allowed


@pytest.mark.parametrize(("mode", "field"), [("warn", "warned"), ("audit", "audited")])
def test_too_large_object_is_admitted_and_reported_in_lenient_modes(mode: str, field: str) -> None:
    decision = decide(UNREAD, runtime(), policy=f"mode: {mode}")
    assert decision.allowed
    assert [finding.rule for finding in getattr(decision, field)] == ["job-size"]


def test_large_objects_without_mpi_are_skipped() -> None:
    base = runtime()
    base["spec"]["mlPolicy"] = {"torch": {}}
    assert decide({**base, "x": [[]] * 50_001}).skipped == too_large.TOO_LARGE
    assert decide(UNREAD, base).skipped == too_large.TOO_LARGE
    assert decide({**UNREAD, "spec": []}, runtime()).skipped == too_large.TOO_LARGE


@pytest.mark.parametrize(
    "manifest", [train_job(), runtime(), runtime(kinds.RUNTIME)], ids=lambda manifest: manifest["kind"]
)
def test_object_too_large_for_the_api_server_is_rejected_without_decoding(manifest: Manifest) -> None:
    for more, message in (([[]] * 60_000, "mappings and lists, at most 20,000"), ("x" * 1_600_000, "bytes, at most")):
        ((path, text, _, rule),) = refused(decide({**manifest, "x": more}, runtime()))
        assert (path, rule) == ("spec", "job-size")
        assert message in text


class TestUpdates:
    @pytest.mark.parametrize("stored", [UNREAD, {**runtime(), "x": [[]] * 60_000}], ids=lambda stored: stored["kind"])
    def test_too_large_object_may_lose_finalizers_but_not_get_labels(self, stored: Manifest) -> None:
        released = {**stored, "metadata": {**stored["metadata"], "finalizers": []}}
        decision = decide(released, runtime(), old=stored)
        assert (decision.allowed, decision.skipped) == (True, too_large.AS_STORED)
        assert decide(stored, runtime(), old=stored).allowed
        labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
        assert not decide(labelled, runtime(), old=stored).allowed

    def test_only_kueue_may_suspend_a_too_large_job(self) -> None:
        suspended = {**UNREAD, "spec": {**UNREAD["spec"], "suspend": True}}
        decision = decide(suspended, view=WithKueue(runtime()), old=UNREAD, username=KUEUE)
        assert decision.skipped == too_large.AS_STORED
        assert not decide(suspended, view=WithKueue(runtime()), old=UNREAD).allowed

    @pytest.mark.parametrize("change", [{"activeDeadlineSeconds": 10**9}, {"trainer": {"numNodes": 3}}])
    def test_user_may_not_change_the_time_limit_or_the_pods_of_a_too_large_job(self, change: Manifest) -> None:
        changed = {**UNREAD, "spec": {**UNREAD["spec"], **change}}
        assert not decide(changed, runtime(), old=UNREAD).allowed

    def test_too_large_job_may_become_small_enough(self) -> None:
        assert decide(train_job(), runtime(), old=UNREAD).allowed
        rejected = refused(decide(train_job(numNodes=300), runtime(), old=UNREAD))
        assert [rule for *_, rule in rejected] == ["worker-count"]

    def test_job_may_not_become_too_large(self) -> None:
        grown = {**UNREAD, "spec": {**UNREAD["spec"], "trainer": {"args": ["a"]}}}
        assert not decide(grown, runtime(), old=train_job()).allowed

    def test_too_large_job_that_is_being_deleted_may_be_updated(self) -> None:
        deleted = {**UNREAD, "metadata": {**UNREAD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert decide(deleted, runtime(), old=deleted).allowed


def test_long_paths_of_merged_values_are_rejected() -> None:
    job = patched(node={"k" * 300_000: {f"{n}": {} for n in range(40_000)}})
    assert [rule for *_, rule in refused(decide(job, runtime()))] == ["job-size"]
