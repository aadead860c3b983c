"""scc: a job is rejected if its pods may use no SCC (SecurityContextConstraints) that accepts them."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.openshift import DEFAULT_SCCS, grants, openshift, project, view
from tests.support.paths import DOCS, EXAMPLES
from tests.support.rule_checks import as_texts, run, violations
from tools import first_jobs
from webhook.api import yaml
from webhook.cli import job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policies

WORKER = "spec.mpiReplicaSpecs[Worker].template"
CONTEXT = "Worker.template.spec.containers.0.securityContext"
ADDED = "template.spec.containers.0.securityContext.capabilities"
BEFORE_V3 = [each for each in DEFAULT_SCCS if each["metadata"]["name"] != "restricted-v3"]
ALLOWING = {
    **next(each for each in DEFAULT_SCCS if each["metadata"]["name"] == "nonroot-v2"),
    "metadata": {"name": "of-a-team"},
    "users": ["system:serviceaccount:team-a:default"],
}
NONE = {"openshift.io/required-scc": "no-such"}
COMMAND = "oc adm policy add-scc-to-user nonroot-v2 -z default -n team-a"
RANGE = "must be in the ranges: [1000680000, 1000689999]"


def check(changes: Any, known: Any = None, **more: Any) -> list[str]:
    return as_texts(violations("scc", changes, view=view() if known is None else known, **more))


def test_user_outside_the_range_is_rejected_with_the_scc_to_ask_for() -> None:
    (violation,) = violations("scc", {CONTEXT: {"runAsUser": 1000}}, view=view())
    assert violation.path == f"{WORKER}.spec.containers[0].securityContext.runAsUser"
    assert violation.message == f'SCC "restricted-v2" rejects 1000: {RANGE}'
    assert violation.fix == f"Have an administrator run: {COMMAND}, or remove runAsUser."
    assert not violation.advisory


def test_job_without_security_context_is_accepted() -> None:
    assert check({}) == []


EXAMPLES_TO_RUN = [path for path in sorted(EXAMPLES.rglob("*.yaml")) if not path.stem.startswith("bad-")]


@pytest.mark.parametrize("path", EXAMPLES_TO_RUN, ids=lambda path: path.stem)
def test_every_example_is_accepted_by_an_scc_that_allows_its_user(path: Path) -> None:
    (job,) = yaml.load_all(path.read_text())
    rejected = as_texts(run("scc", job, view=view()))
    assert [each.partition(": ")[2] for each in rejected] == [f'SCC "restricted-v2" rejects 1000: {RANGE}'] * 2
    assert checked(job) == ["scc"]
    assert checked(job, "restricted-v3") == checked(job, "nonroot-v2") == []


@pytest.mark.parametrize("framework", ["horovod", "pytorch", "deepspeed"])
def test_changes_in_the_openshift_guide_are_enough_for_a_job_that_runs_as_root(framework: str) -> None:
    text = first_jobs.text(framework=framework, image="a:1", program=("train",), mpiuser=False)
    (job,) = yaml.load_all(text.replace("- --allow-run-as-root\n", "\n"))
    (patch,) = [yaml.load_all(each) for each in page_blocks("sshAuthMountPath")]
    patched_spec = patch[0]["spec"]
    changes: dict[str, Any] = {"spec.sshAuthMountPath": patched_spec["sshAuthMountPath"]}
    for role, replica in patched_spec["mpiReplicaSpecs"].items():
        (container,) = replica["template"]["spec"]["containers"]
        changes |= {
            f"{role}.template.spec.containers.0.{key}": value for key, value in container.items() if key != "name"
        }
    assert checked(job) == checked(job, "restricted-v3") == ["ssh-paths"]
    assert checked(changed(changes, job)) == ["scc"]
    assert checked(changed(changes, job), "restricted-v3") == []


def page_blocks(text: str) -> list[str]:
    blocks = re.findall("```yaml\n(.*?)```", (DOCS / "openshift.md").read_text(), re.DOTALL)
    return [block for block in blocks if text in block]


def checked(job: Any, *may_use: str) -> list[str]:
    """The ids of the rules that report the job. The default service account may also use the SCCs in `may_use`."""
    job["metadata"].pop("namespace", None)
    world = JobWorld(view({"default": may_use}), schema=None, instead=load_policies(None))
    decision = job_check.check(Manifest("job.yaml", job), world, namespace="team-a").validation
    return sorted({finding.rule for _, finding in decision.findings})


def test_anyuid_rejects_the_capability_that_sshd_needs_as_root() -> None:
    changes = {CONTEXT: {"capabilities": {"add": ["SYS_CHROOT"]}}}
    assert check(changes, view({"default": ["anyuid"]})) == [
        f'{WORKER}.spec.containers[0].securityContext.capabilities.add: SCC "anyuid" rejects "SYS_CHROOT": '
        "capability may not be added"
    ]


def test_message_names_the_further_rejections_after_the_first() -> None:
    changes = {CONTEXT: {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK", "SYS_CHROOT"]}}}
    (violation,) = violations("scc", changes, view=view())
    assert violation.message == (
        f'SCC "restricted-v2" rejects 0: {RANGE}; also capabilities.add "IPC_LOCK" (capability may not be '
        'added), capabilities.add "SYS_CHROOT" (capability may not be added)'
    )
    assert violation.fix == (
        "Use an image with its own user, and remove IPC_LOCK from capabilities.add and SYS_CHROOT from "
        "capabilities.add: sshd runs as root under no default SCC except privileged."
    )


def test_unset_host_users_is_not_reported_next_to_another_field() -> None:
    changes = {f"{role}.{ADDED}": {"add": ["IPC_LOCK"]} for role in ("Launcher", "Worker")}
    for violation in violations("scc", changes, view=view({"default": ["restricted-v3"]})):
        assert violation.message.endswith('rejects "IPC_LOCK": capability may not be added')
        own = "have an administrator write an SCC of your own that allows it"
        assert violation.fix == f"Remove IPC_LOCK from capabilities.add, or {own}."


def test_both_roles_are_advised_to_set_host_users_if_that_is_enough() -> None:
    changes: dict[str, Any] = {f"{role}.template.spec.hostUsers": True for role in ("Launcher", "Worker")}
    changes |= {f"{role}.template.spec.containers.0.securityContext.runAsUser": 1000 for role in ("Launcher", "Worker")}
    changes["Launcher.template.spec.initContainers"] = [
        {"name": "wait", "image": "i", "securityContext": {"runAsUser": 1000}}
    ]
    advice = {each.fix for each in violations("scc", changes, view=view({"default": ["restricted-v3"]}))}
    assert advice == {f"Set hostUsers to false, or have an administrator run: {COMMAND}."}


def test_fault_of_a_container_is_not_reported_again_for_its_init_container() -> None:
    init = [{"name": "wait", "image": "i", "securityContext": {"runAsUser": 1000}}]
    changes = {CONTEXT: {"runAsUser": 1000}, "Worker.template.spec.initContainers": init}
    (violation,) = violations("scc", changes, view=view())
    assert violation.path == f"{WORKER}.spec.containers[0].securityContext.runAsUser"
    assert violation.message == f'SCC "restricted-v2" rejects 1000: {RANGE}'


def test_sccs_of_the_pods_service_account_apply() -> None:
    changes = {CONTEXT: {"runAsUser": 1000}, "Worker.template.spec.serviceAccountName": "mpi"}
    assert check(changes, view({"mpi": ["nonroot-v2"]})) == []
    (violation,) = violations("scc", changes, view=view({"mpi": []}))
    assert "-z mpi -n team-a" in violation.fix


@pytest.mark.parametrize(
    ("creator", "role"), [("mpi-operator:mpi-operator", "Worker"), ("kube-system:job-controller", "Launcher")]
)
def test_sccs_of_the_account_that_creates_the_pods_apply(creator: str, role: str) -> None:
    changes = {
        f"{each}.template.spec.containers.0.securityContext": {"runAsUser": 1000} for each in ("Launcher", "Worker")
    }
    (left,) = check(changes, view({f"system:serviceaccount:{creator}": ["nonroot-v2"]}))
    assert f"[{role}]" not in left


def test_annotation_can_require_one_scc() -> None:
    required = {"Worker.template.metadata.annotations": {"openshift.io/required-scc": "nonroot-v2"}}
    assert check(required, view({"default": ["nonroot-v2"]})) == []
    (violation,) = violations("scc", required, view=view())
    assert violation.path == f"{WORKER}.metadata.annotations[openshift.io/required-scc]"
    assert violation.message == 'OpenShift rejects "nonroot-v2": the pods may not use this SCC, or it does not exist'


def test_unknown_required_scc_causes_no_other_findings() -> None:
    for roles in (("Worker",), ("Launcher", "Worker")):
        job = changed(dict.fromkeys((f"{role}.template.metadata.annotations" for role in roles), NONE))
        assert set(checked(job)) <= {"scc", "ssh-paths"}


@pytest.mark.parametrize("unknown", [(), ("SccGrants",), ("SccGrants", "SecurityContextConstraints")])
def test_pod_security_reports_nothing_that_an_scc_fills_in(unknown: tuple[str, ...]) -> None:
    objects = [each for each in openshift() if each["kind"] not in unknown]
    world = JobWorld(Snapshot(objects), schema=None, instead=load_policies(None))
    (job,) = yaml.load_all((EXAMPLES / "openmpi-pi.yaml").read_text())
    job["metadata"].pop("namespace", None)
    decision = job_check.check(Manifest("job.yaml", job), world, namespace="team-a").validation
    assert "pod-security" not in {finding.rule for _, finding in decision.findings}


def test_job_in_a_user_namespace_is_accepted_under_restricted_v3() -> None:
    changes = {CONTEXT: {"runAsUser": 1000}, "Worker.template.spec.hostUsers": False}
    assert check(changes, view({"default": ["restricted-v3"]})) == []


@pytest.mark.parametrize(
    "known",
    [
        Snapshot([]),
        Snapshot([project()]),
        Snapshot([project(), *DEFAULT_SCCS]),
        Snapshot([project(), *BEFORE_V3, grants("default", "nonroot-v2")]),
        Snapshot([project(), *BEFORE_V3, ALLOWING]),
    ],
)
def test_job_is_accepted_if_its_account_might_use_a_matching_scc(known: Snapshot) -> None:
    assert check({CONTEXT: {"runAsUser": 1000}}, known) == []


@pytest.mark.parametrize("granted", [[], [grants("default", "restricted-v2")]])
def test_job_gets_a_warning_if_its_permitted_sccs_are_unknown(granted: list[Any]) -> None:
    known = Snapshot([project(), *BEFORE_V3, *granted])
    (violation,) = violations("scc", {CONTEXT: {"runAsUser": 1000}}, view=known)
    assert violation.advisory
    assert violation.message == f'SCC "restricted-v2" rejects 1000: {RANGE}'
    assert violation.fix == (
        f"If the pods may not use nonroot-v2, have an administrator run: {COMMAND}, or remove runAsUser."
    )
    changes: dict[str, Any] = {CONTEXT: {"runAsUser": 1000, "privileged": True}, "Worker.template.spec.hostPID": True}
    required = {"Worker.template.metadata.annotations": NONE}
    assert all(each.advisory for each in violations("scc", changes | required, view=known))


def test_namespace_without_user_id_ranges_is_not_checked() -> None:
    plain = project()
    del plain["metadata"]["annotations"]
    assert check({CONTEXT: {"runAsUser": 1000}}, view(None, plain)) == []


def test_update_that_fixes_one_fault_has_a_lower_degree() -> None:
    """The degree says how bad a violation is."""
    both = {CONTEXT: {"runAsUser": 1000, "privileged": True}}
    one = {CONTEXT: {"runAsUser": 1000}}
    (before,), (after,) = (violations("scc", each, view=view()) for each in (both, one))
    assert before.degree is not None
    assert after.degree is not None
    assert after.degree.is_within(before.degree)
    assert not before.degree.is_within(after.degree)
