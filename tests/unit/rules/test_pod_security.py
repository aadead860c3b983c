"""The rule `pod-security`: the levels that apply, the message at each field, and the fix.

The floor is a level that the policy sets in addition to the namespace's labels.
"""

from random import Random

import pytest
from pydantic import ValidationError

from tests.support import openshift
from tests.support.any_job import Json
from tests.support.jobs import changed
from tests.support.namespaces import labelled
from tests.support.pod_security.pods import COMPLIANT, pod
from tests.support.policies import HEADER
from tests.support.rule_checks import defaulted, violations
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.kit.context import Context
from webhook.policy.in_force import PolicySet, load_policies
from webhook.predict.pod_security import LATEST, Level, evaluate
from webhook.predict.pod_security.pod import convert
from webhook.rules import REGISTRY, CauseReason, Violation

LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template"
WORKER = "spec.mpiReplicaSpecs[Worker].template"
SECURE = {f"{role}.template.spec.containers.0.securityContext": COMPLIANT for role in ("Launcher", "Worker")}
HOST_PATH = {"Worker.template.spec.volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]}


def check(changes: Json | None = None, /, settings: Json | None = None, **modes: str) -> list[Violation]:
    """The violations in a namespace with these labels. Without `changes` the job satisfies the level `restricted`."""
    return violations("pod-security", {**SECURE, **(changes or {})}, settings=settings, view=labelled(**modes))


def kinds(result: list[Violation]) -> list[str]:
    """Each violation as `action path: reason`, where the action is the strictest possible one."""
    return [f"{violation.ceiling} {violation.path}: {_reason(violation)}" for violation in result]


def _reason(violation: Violation) -> str:
    return violation.message.partition(": ")[2].partition(" (")[0]


def test_violations_of_a_job_without_security_contexts() -> None:
    result = violations("pod-security", view=labelled(enforce="restricted"))
    context = "spec.containers[0].securityContext"
    assert kinds(result) == [
        f"deny {path}.{context}.{fault}"
        for path in (LAUNCHER, WORKER)
        for fault in (
            "allowPrivilegeEscalation: allowPrivilegeEscalation != false",
            "capabilities.drop: unrestricted capabilities",
            "runAsNonRoot: runAsNonRoot != true",
            "seccompProfile.type: seccompProfile",
        )
    ]
    assert {violation.reason for violation in result} == {CauseReason.FORBIDDEN}
    assert check({}, enforce="restricted") == []


ROOT = {"Worker.template.spec.containers.0.securityContext": {"runAsUser": 0}}


def test_container_that_runs_as_root_is_one_violation() -> None:
    """Missing fields are not reported, because fixing them would not let the container start."""
    [violation] = check(ROOT, enforce="restricted")
    assert violation.path == f"{WORKER}.spec.containers[0].securityContext.runAsUser"
    start = "Set runAsUser to a user above 0 that the image has. This namespace starts no root containers. To allow it"
    assert violation.fix.startswith(start)
    context = {"runAsUser": 0, "allowPrivilegeEscalation": True, "capabilities": {"add": ["SYS_ADMIN"]}}
    with_more_fields = check({"Worker.template.spec.containers.0.securityContext": context}, enforce="restricted")
    assert len(with_more_fields) == 3, "other fields that the user wrote are reported too"


def test_pod_that_runs_as_root_is_one_violation() -> None:
    bare = {f"{role}.template.spec.containers.0.securityContext": {} for role in ("Launcher", "Worker")}
    of_pods = {f"{role}.template.spec.securityContext": {"runAsUser": 0} for role in ("Launcher", "Worker")}
    found = check({**bare, **of_pods}, enforce="restricted")
    assert [each.path for each in found] == [f"{path}.spec.securityContext.runAsUser" for path in (LAUNCHER, WORKER)]


@pytest.mark.parametrize(("mode", "word"), [("enforce", "deny"), ("warn", "warn"), ("audit", "audit")])
@pytest.mark.parametrize(
    ("port", "more"),
    [
        ({"containerPort": 2222}, []),
        ({"containerPort": 2222, "hostPort": 2222}, [f"{WORKER}.spec.containers[0].ports[0].hostPort: hostPort"]),
    ],
)
def test_ports_that_host_network_opens_are_not_reported(port: Json, more: list[str], mode: str, word: str) -> None:
    changes = {"Worker.template.spec.hostNetwork": True, "Worker.template.spec.containers.0.ports": [port]}
    result = check(changes, **{mode: "baseline"})
    assert kinds(result) == [f"{word} {fault}" for fault in (f"{WORKER}.spec.hostNetwork: host namespaces", *more)]


def test_violation_has_path_message_fix_and_reason() -> None:
    (violation,) = check(HOST_PATH, enforce="baseline", enforce_version="v1.30")
    assert violation == Violation(
        f"{WORKER}.spec.volumes[0].hostPath",
        'violates PodSecurity "baseline:v1.30": hostPath volumes (volume "ib")',
        fix="RDMA needs no hostPath: a device resource such as rdma/hca in limits brings the devices. "
        'To allow it, an administrator would have to label the namespace "team-a" '
        "pod-security.kubernetes.io/enforce=privileged.",
        reason=CauseReason.FORBIDDEN,
    )


@pytest.mark.parametrize(
    "view", [NothingKnown(), labelled("other", enforce="restricted"), labelled(), labelled(enforce="privileged")]
)
def test_document_is_not_decoded_if_no_level_restricts_pods(view: Snapshot) -> None:
    rule = REGISTRY["pod-security"]
    context = Context(namespace="team-a", document=b"not even JSON", view=view)
    assert list(rule.check(defaulted(changed()), rule.settings(), context)) == []


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ({"enforce": "baseline"}, ["deny"]),
        ({"audit": "baseline"}, ["audit"]),
        ({"warn": "baseline"}, ["warn"]),
        ({"warn": "baseline", "audit": "baseline"}, ["warn", "audit"]),
        ({"enforce": "baseline", "warn": "baseline", "audit": "baseline"}, ["deny"]),  # reported once
        ({"enforce": "restricted", "warn": "baseline", "audit": "baseline"}, ["deny"]),
        (
            {"enforce": "baseline", "warn": "restricted", "audit": "restricted"},
            ["deny"],
        ),  # `restricted` rejects the volume by another check, which is not reported again
        ({"enforce": "privileged", "warn": "restricted"}, ["warn"]),
    ],
)
def test_mode_of_the_label_decides_the_action(modes: dict[str, str], expected: list[str]) -> None:
    result = check(HOST_PATH, **modes)
    assert [str(violation.ceiling) for violation in result] == expected
    words = {"deny": "violates", "warn": "would violate", "audit": "would violate"}
    assert all(v.message.startswith(f"{words[v.ceiling]} PodSecurity ") for v in result)


def test_further_violations_of_a_stricter_level_are_reported() -> None:
    changes = {**HOST_PATH, "Worker.template.spec.containers.0.securityContext": {"runAsNonRoot": True}}
    context = f"{WORKER}.spec.containers[0].securityContext"
    assert kinds(check(changes, enforce="baseline", audit="restricted")) == [
        f"deny {WORKER}.spec.volumes[0].hostPath: hostPath volumes",
        f"audit {context}.allowPrivilegeEscalation: allowPrivilegeEscalation != false",
        f"audit {context}.capabilities.drop: unrestricted capabilities",
        f"audit {context}.seccompProfile.type: seccompProfile",
    ]


def test_fix_of_a_warning_names_no_exemption() -> None:
    (violation,) = check(HOST_PATH, warn="baseline")
    assert violation.fix.endswith("brings the devices.")


@pytest.mark.parametrize(
    ("modes", "settings", "count"),
    [
        ({"enforce": "restricted", "enforce_version": "v1.7"}, {}, 0),  # v1.7 does not check allowPrivilegeEscalation
        ({"enforce": "restricted", "enforce_version": "v1.8"}, {}, 1),
        ({"enforce": "restricted"}, {"clusterVersion": "v1.7"}, 0),
        ({"enforce": "restricted", "enforce_version": "v1.99"}, {"clusterVersion": "v1.7"}, 0),
        ({"warn": "restricted"}, {"clusterVersion": "v1.7"}, 0),
        ({"enforce": "restricted"}, {"clusterVersion": "v1.99"}, 1),
        ({}, {"floor": "restricted", "clusterVersion": "v1.7"}, 0),
        ({}, {"floor": "restricted"}, 1),
        ({"enforce": "baseline"}, {"floor": "restricted"}, 1),
        (
            {"enforce": "restricted", "enforce_version": "v1.7"},
            {"floor": "restricted"},
            0,
        ),  # label and floor have the same level, so the version of the label applies
    ],
)
def test_version_comes_from_the_label_or_the_floor_or_the_cluster(
    modes: dict[str, str], settings: Json, count: int
) -> None:
    context = {**COMPLIANT, "allowPrivilegeEscalation": True}
    result = check({"Worker.template.spec.containers.0.securityContext": context}, settings, **modes)
    assert len(result) == count


@pytest.mark.parametrize(("version", "excused"), [("v1.32", False), ("v1.34", False), ("v1.35", True)])
def test_version_of_the_cluster_decides_whether_root_in_a_user_namespace_is_accepted(
    version: str, excused: bool
) -> None:
    root = {"Worker.template.spec.containers.0.securityContext": {**COMPLIANT, "runAsUser": 0, "runAsNonRoot": False}}
    policy = load_policies(HEADER + "rules: {pod-security: {floor: restricted}}")
    settings = PolicySet(policy.layers, version).for_any_namespace().settings("pod-security")
    assert settings is not None
    changes = {**SECURE, **root, "Worker.template.spec.hostUsers": False}
    found = violations("pod-security", changes, settings=settings.model_dump(by_alias=True))
    assert (found == []) is excused


@pytest.mark.parametrize("view", [NothingKnown(), labelled("other")])
def test_floor_applies_if_the_namespace_is_unknown(view: Snapshot) -> None:
    (violation,) = violations("pod-security", {**SECURE, **HOST_PATH}, settings={"floor": "baseline"}, view=view)
    assert violation.message.startswith('violates PodSecurity "baseline:latest": hostPath volumes')
    assert violation.fix.endswith("an administrator would have to exempt the job from the rule pod-security.")


@pytest.mark.parametrize(
    ("spec", "enforce", "floor", "ways"),
    [
        ({"hostNetwork": True}, "restricted", "privileged", "label the namespace x=privileged"),
        ({"hostNetwork": True}, "baseline", "privileged", "label the namespace x=privileged"),
        ({"volumes": [{"nfs": {}}]}, "restricted", "privileged", "label the namespace x=baseline"),
        ({"volumes": [{"hostPath": {}}]}, "restricted", "privileged", "label the namespace x=privileged"),
        ({"volumes": [{"hostPath": {}}]}, "restricted", "baseline", "label the namespace x=privileged and to exempt"),
        ({"volumes": [{"hostPath": {}}]}, "baseline", "restricted", "label the namespace x=privileged and to exempt"),
        ({"volumes": [{"nfs": {}}]}, "baseline", "restricted", "exempt"),
    ],
)
def test_fix_names_the_ways_to_allow_the_pod(spec: Json, enforce: str, floor: str, ways: str) -> None:
    changes = {f"Worker.template.spec.{key}": value for key, value in spec.items()}
    (violation,) = check(changes, {"floor": floor}, enforce=enforce)
    sentence = violation.fix.partition("To allow it, an administrator would have to ")[2]
    shown = sentence.replace('"team-a" pod-security.kubernetes.io/enforce', "x")
    assert shown.replace(" the job from the rule pod-security", "") == f"{ways}."


@pytest.mark.parametrize(
    ("modes", "fault"),
    [
        ({"enforce": "oops", "enforce_version": "v1.20"}, 'enforce is "oops", so restricted applies'),
        ({"audit": "oops"}, 'audit is "oops", so privileged applies'),
        ({"warn": ""}, 'warn is "", so privileged applies'),
        ({"warn_version": "1.20"}, 'warn-version is "1.20", so latest applies'),
        ({"enforce": "x" * 500}, f'enforce is "{"x" * 97}...", so restricted applies'),
    ],
)
def test_invalid_label_is_a_warning(modes: dict[str, str], fault: str) -> None:
    first, *violations_of_levels = check(HOST_PATH, **modes)
    assert first.advisory
    assert (first.path, first.message) == ("metadata.namespace", f"its label pod-security.kubernetes.io/{fault}")
    assert first.fix.startswith("Have an administrator correct it: it must be ")
    assert [violation.ceiling for violation in violations_of_levels] == ["deny"] * modes.get("enforce", "").startswith(
        ("oops", "x")
    )


def test_exempt_runtime_class_is_accepted() -> None:
    changes = {**HOST_PATH, "Worker.template.spec.runtimeClassName": "kata"}
    assert check(changes, {"exemptRuntimeClasses": ["gvisor", "kata"]}, enforce="baseline") == []
    assert len(check(changes, {"exemptRuntimeClasses": ["gvisor"]}, enforce="baseline")) == 1
    assert len(check(HOST_PATH, {"exemptRuntimeClasses": ["kata"]}, enforce="baseline")) == 1


def test_value_of_a_wrong_type_is_reported_at_its_path() -> None:
    (violation,) = check({"Worker.template.spec.hostPID": "yes"}, enforce="baseline")
    assert violation.path == f"{WORKER}.spec.hostPID"
    assert violation.message == "must be true or false, not a string"


def test_long_message_is_shortened() -> None:
    volumes = [{"name": f"volume-{index}", "hostPath": {}} for index in range(500)]
    (violation,) = check({"Worker.template.spec.volumes": volumes}, enforce="baseline")
    assert len(violation.message) == 1000
    assert violation.message.endswith("...")


@pytest.mark.parametrize(
    "settings",
    [{"floorVersion": "1.30"}, {"clusterVersion": "v1.030"}],
)
def test_invalid_settings_are_rejected(settings: Json) -> None:
    with pytest.raises(ValidationError):
        REGISTRY["pod-security"].settings.model_validate(settings)


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
@pytest.mark.parametrize("seed", range(100))
def test_additions_of_the_operator_do_not_change_the_result(role: str, seed: int) -> None:
    template = pod(Random(seed))
    before = evaluate(Level.RESTRICTED, LATEST, convert(template))
    spec = template["spec"]
    spec.setdefault("volumes", []).append({"name": "ssh-auth", "secret": {"secretName": "train-ssh"}})
    if role == "Launcher":
        spec["volumes"].append({"name": "mpi-job-config", "configMap": {"name": "train-config"}})
    container = spec["containers"][0]
    container.setdefault("volumeMounts", []).append({"name": "ssh-auth", "mountPath": "/root/.ssh"})
    container.setdefault("env", []).append({"name": "K_MPI_JOB_ROLE", "value": role.lower()})
    container.setdefault("command", ["/usr/sbin/sshd", "-De"])
    spec |= {"hostname": "train-worker-0", "subdomain": "train", "restartPolicy": "Never", "dnsConfig": {}}
    template["metadata"]["labels"] = {"training.kubeflow.org/job-name": "train"}
    assert evaluate(Level.RESTRICTED, LATEST, convert(template)) == before


@pytest.mark.parametrize("mode", ["warn", "enforce"])
def test_field_set_by_an_scc_is_not_reported(mode: str) -> None:
    known = openshift.view(None, openshift.project(**{f"pod-security.kubernetes.io/{mode}": "restricted"}))
    assert violations("pod-security", {}, view=known) == []


def test_field_left_open_by_an_scc_is_reported() -> None:
    known = openshift.view({"default": ["anyuid"]})
    reported = {violation.message.partition(": ")[2] for violation in violations("pod-security", {}, view=known)}
    assert any("allowPrivilegeEscalation != false" in each for each in reported)
