"""The rule `pod-template` as a whole. The tests of its single checks are in tests/unit/predict/pod_template."""

import json
import time
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.support.any_job import Json, any_job
from tests.support.jobs import changed
from tests.support.limit_ranges import limit_range
from tests.support.pod_template import BOX, NO_RANGES, SPEC, told
from tests.support.rule_checks import as_texts, run, violations
from tests.support.strategies import PROPERTY
from tests.support.worlds.rich_template import RICH
from webhook.api.pod import PodTemplate
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.predict.limits import MAX_FAULTS_PER_JOB
from webhook.predict.pod_template import Role, faults, reading
from webhook.predict.pod_template.fault import Faults
from webhook.rules import CauseReason, Violation

RANGES = Snapshot([limit_range("l")])
HUGE = {f"{BOX}.resources": {"limits": {"hugepages-2Mi": "4Mi"}}}
NO_LIMIT = {f"{BOX}.resources": {"requests": {"rdma/hca": 1}}}


def test_valid_templates_are_accepted() -> None:
    assert told({}) == []
    assert told({"Worker.template": RICH, "Launcher.template": RICH}) == []


def test_violation_has_path_message_fix_and_reason() -> None:
    assert violations("pod-template", {f"{BOX}.imagePullPolicy": "always"}) == [
        Violation(
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].imagePullPolicy",
            '"always" is not supported',
            fix="Write Always.",
            reason=CauseReason.NOT_SUPPORTED,
        )
    ]


def test_all_faults_of_both_roles_are_reported_at_once() -> None:
    changes = {
        "Launcher.template.spec.containers.0.imagePullPolicy": "always",
        "Launcher.template.spec.containers.0.name": "my_launcher",
        "Worker.template.spec.tolerations": [{"key": "a", "operator": "exists"}],
        "Worker.template.spec.containers.0.volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    launcher, worker = (f"spec.mpiReplicaSpecs[{role}].template.spec" for role in ("Launcher", "Worker"))
    assert as_texts(violations("pod-template", changes)) == [
        f'{launcher}.containers[0].imagePullPolicy: "always" is not supported',
        f'{launcher}.containers[0].name: "my_launcher" contains "_"; allowed are lower case letters, digits and "-"',
        f'{worker}.tolerations[0].operator: "exists" is not supported',
        f'{worker}.containers[0].volumeMounts[0].name: there is no volume "data"',
    ]


def test_same_fault_in_both_roles_is_reported_for_both() -> None:
    """The rule skips a part of the second template only if the first template has an equal part without faults."""
    bad = [{"key": "a b", "operator": "Exists"}]
    changes = {f"{role}.template.spec.tolerations": bad for role in ("Launcher", "Worker")}
    assert [each.path for each in violations("pod-template", changes)] == [
        f"spec.mpiReplicaSpecs[{role}].template.spec.tolerations[0].key" for role in ("Launcher", "Worker")
    ]


def test_duplicate_volume_is_reported_if_the_launcher_has_the_same_volumes() -> None:
    volumes = [{"name": "a"}, {"name": "b", "emptyDir": {}}]
    changes = {"Launcher.template.spec.volumes": volumes, f"{SPEC}.volumes": [*volumes, volumes[0]]}
    assert told(changes) == ['spec.volumes[2].name: there is another volume "a". Write a-2.']


@pytest.mark.parametrize("volume", ["ssh-auth", "mpi-job-config"])
@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_volumes_of_the_operator_may_be_mounted(role: str, volume: str) -> None:
    init = {"name": "wait", "image": "busybox:1.37", "volumeMounts": [{"name": volume, "mountPath": "/own"}]}
    result = as_texts(violations("pod-template", {f"{role}.template.spec.initContainers": [init]}))
    path = f"spec.mpiReplicaSpecs[{role}].template.spec.initContainers[0].volumeMounts[0].name"
    missing = (role, volume) == ("Worker", "mpi-job-config")
    assert result == ([f'{path}: there is no volume "{volume}"'] if missing else [])


@pytest.mark.parametrize(("changes", "advisory"), [(HUGE, True), (NO_LIMIT, False)])
def test_limit_ranges_decide_how_a_missing_value_is_reported(changes: Json, advisory: bool) -> None:
    """If the namespace has LimitRanges, the rule `limit-range` reports the missing value.

    If LimitRanges are unknown, missing cpu and memory are a warning. A missing limit of an extended resource is a
    rejection, because LimitRanges rarely set it.
    """
    assert [text.startswith("(advice)") for text in told(changes, NO_RANGES)] == [False]
    assert [text.startswith("(advice)") for text in told(changes, NothingKnown())] == [advisory]
    assert told(changes, RANGES) == []


def test_warning_does_not_hide_a_fault_of_the_same_field() -> None:
    changes = {f"{BOX}.resources": {"limits": {"memory": 32}, "requests": {"memory": 64}}}
    assert [text for text in told(changes) if not text.startswith("(advice)")] == [
        "spec.containers[0].resources.requests[memory]: 64 is above the limit of 32. "
        "Set it to 32 or less, or raise the limit."
    ]


def test_restart_policy_of_the_role_applies() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    assert told({"Launcher.template.spec.containers.0.resizePolicy": policy}) == []
    assert told({f"{BOX}.resizePolicy": policy, "Worker.restartPolicy": "OnFailure"}) == []
    assert len(told({f"{BOX}.resizePolicy": policy})) == 1


def test_number_of_faults_is_limited() -> None:
    mounts = [{"name": f"data-{index}", "mountPath": f"/{index}"} for index in range(2 * MAX_FAULTS_PER_JOB)]
    assert len(told({f"{BOX}.volumeMounts": mounts})) == MAX_FAULTS_PER_JOB


def test_number_of_suggested_names_is_limited() -> None:
    mounts = [{"name": f"scrtch-{index}", "mountPath": f"/{index}"} for index in range(9)]
    changes = {f"{SPEC}.volumes": [{"name": "scratch"}], f"{BOX}.volumeMounts": mounts}
    assert sum("Write" in text for text in told(changes)) == 5


@pytest.mark.parametrize("count", [10, 30_000])
def test_fault_after_many_values_is_reported(count: int) -> None:
    """A volume that is defined after many values can be mounted too."""
    shared = {f"{SPEC}.volumes": [{"name": "a"}], f"{BOX}.volumeMounts": [{"name": "a", "mountPath": "/a"}]}
    place = f"{SPEC}.securityContext"
    bad = told({place: {"supplementalGroups": [*range(count), -1]}, **shared})
    assert [text.partition(":")[0] for text in bad] == [f"spec.securityContext.supplementalGroups[{count}]"]
    assert told({place: {"supplementalGroups": [*range(count)]}, **shared}) == []


def test_fast_and_slow_decoder_agree() -> None:
    """A template with a fault is decoded again by a slow decoder, which explains the fault."""
    noted = Faults()
    decoded = reading.decode(json.dumps(RICH).encode(), "T", noted)
    other = {**RICH, "spec": {**RICH["spec"], "dnsPolicy": "none"}}
    explained = reading.decode(json.dumps(other).encode(), "T", noted)
    assert [fault.path for fault in noted] == ["T.spec.dnsPolicy"]
    assert explained.spec is not None
    explained.spec.dns_policy = "ClusterFirst"
    assert msgspec.to_builtins(explained) == msgspec.to_builtins(decoded)


@given(any_job())
@PROPERTY
def test_each_field_of_any_job_is_reported_once(job: Json) -> None:
    reported = [(each.path, each.advisory) for each in run("pod-template", job)]
    assert len(reported) == len(set(reported))


def _corrupted(rng: Random, value: Any) -> Any:
    """A copy of the value with one nested value replaced."""
    junk = (None, "", "x", -1, 2**70, 1.5, True, [], {}, [None], {"a": None}, ["a"], [{}])
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return {**value, key: _corrupted(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        index = rng.randrange(len(value))
        return [*value[:index], _corrupted(rng, value[index]), *value[index + 1 :]]
    return rng.choice(junk)


def test_corrupted_template_is_checked_without_error() -> None:
    rng = Random(3)
    role = Role("Worker", "Worker", PodTemplate(), (), never_restarts=True)
    for _ in range(500):
        job = changed({"Worker.template": _corrupted(rng, _corrupted(rng, RICH))})
        for fault in faults(json.dumps(job).encode(), [role], without_ranges=True):
            assert fault.message
            assert fault.fix.endswith(".")


def test_fix_for_a_missing_volume_is_the_volume_of_the_other_role() -> None:
    changes = {
        "Worker.template.spec.volumes": [{"name": "config", "configMap": {"name": "nccl"}}],
        "Launcher.template.spec.containers.0.volumeMounts": [{"name": "config", "mountPath": "/etc/nccl"}],
    }
    [violation] = violations("pod-template", changes)
    assert '{"name": "config", "configMap": {"name": "nccl"}}' in violation.fix


def test_many_mounts_of_volumes_in_the_other_role_are_judged_fast() -> None:
    changes = {
        "Launcher.template.spec.containers.0.volumeMounts": [
            {"name": "data", "mountPath": f"/{number}"} for number in range(400)
        ],
        "Worker.template.spec.volumes": [{"name": "data", "emptyDir": {"sizeLimit": f"{n}Gi"}} for n in range(1, 401)],
    }
    began = time.thread_time()
    found = violations("pod-template", changes)
    assert time.thread_time() - began < 0.5
    missing = [violation for violation in found if violation.message == 'there is no volume "data"']
    assert missing
    assert {"400Gi" in violation.fix for violation in missing} == {True}
