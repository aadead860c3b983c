"""Conversion of pod templates from `kubectl exec` to ssh: old fields are removed, and necessary changes are reported.

The agent is the program with which mpirun starts processes on workers. The old operator's agent was `kubexec.sh`.
"""

from copy import deepcopy
from typing import Any

import pytest

from webhook.converters.report import Note, Outcome, Report
from webhook.parts.older_versions import transport


def changed(
    role: str, container: dict[str, Any], pod: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[Note]]:
    report = Report()
    template = deepcopy({"spec": {"containers": [container], **(pod or {})}})
    transport.change(role, template, 0, "template", report)
    return template["spec"], list(report.notes)


AGENT = {"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"}
OTHER = {"name": "A", "value": "1"}


def test_variable_that_sets_kubexec_as_the_agent_is_removed() -> None:
    pod, notes = changed("Launcher", {"env": [OTHER, AGENT]})
    assert pod["containers"][0]["env"] == [OTHER]
    assert [(note.outcome, note.field) for note in notes] == [(Outcome.LOST, "template.spec.containers[0].env[1]")]
    assert "env" not in changed("Launcher", {"env": [AGENT]})[0]["containers"][0]
    own = {"name": "OMPI_MCA_plm_rsh_agent", "value": "ssh"}
    pod, notes = changed("Launcher", {"env": [own, {"name": "P", "value": "/opt/kube/kubectl"}]})
    assert len(pod["containers"][0]["env"]) == 2
    assert [note.outcome for note in notes] == [Outcome.TO_DO] * 2


@pytest.mark.parametrize(
    ("words", "remaining"),
    [
        (["mpirun", "-mca", "plm_rsh_agent", "/etc/mpi/kubexec.sh", "-np", "2"], ["mpirun", "-np", "2"]),
        (["mpirun", "-mca", "btl", "tcp"], ["mpirun", "-mca", "btl", "tcp"]),
        (["sh", "-c", "mpirun -mca plm_rsh_agent /etc/mpi/kubexec.sh -np 2"], ["sh", "-c", "mpirun -np 2"]),
        (["sh", "-c", "mpirun --mca plm_rsh_agent '/x y' a; b"], ["sh", "-c", "mpirun a; b"]),
    ],
)
@pytest.mark.parametrize("key", ["command", "args"])
def test_option_that_sets_the_agent_is_removed_from_the_command_line(
    key: str, words: list[str], remaining: list[str]
) -> None:
    pod, notes = changed("Launcher", {"command": ["x"], key: words})
    assert pod["containers"][0][key] == remaining
    assert [note.outcome for note in notes] == [Outcome.LOST] * (words != remaining)


@pytest.mark.parametrize(
    "script", ["/etc/mpi/kubexec.sh host", "/opt/kube/kubectl get pods", "kubectl get pods", "./discover_hosts.sh"]
)
def test_script_that_uses_kubectl_is_reported(script: str) -> None:
    _, notes = changed("Launcher", {"command": ["sh", "-c", script]})
    assert [(note.outcome, note.field) for note in notes] == [(Outcome.TO_DO, "template.spec.containers[0].command")]


def test_possible_secret_is_kept_and_reported() -> None:
    env = [
        {"name": "WANDB_API_KEY", "value": "x"},
        {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "p"}}},
        {"name": "NEXT_TOKENS", "value": "5"},
        {"name": "hf-token", "value": ""},
    ]
    pod, notes = changed("Launcher", {"env": env})
    assert pod["containers"][0]["env"] == env
    assert [(note.outcome, note.field) for note in notes] == [(Outcome.TO_DO, "template.spec.containers[0].env[0]")]
    assert notes[0].text.startswith("WANDB_API_KEY looks like a secret, ")


def test_containers_that_deliver_kubectl_are_removed() -> None:
    mount = {"name": "mpi-job-kubectl", "mountPath": "/opt/kube"}
    pod = {"volumes": [{"name": "mpi-job-kubectl"}, {"name": "a"}], "initContainers": [{"name": "kubectl-delivery"}]}
    new, notes = changed("Launcher", {"volumeMounts": [mount]}, pod)
    assert new == {"containers": [{}], "volumes": [{"name": "a"}]}
    assert {note.outcome for note in notes} == {Outcome.LOST}
    assert len(notes) == 3


@pytest.mark.parametrize(
    ("container", "converted", "outcome"),
    [
        ({}, {}, None),
        ({"command": ["sleep", "365d"]}, {}, Outcome.LOST),
        ({"command": ["/bin/bash", "-c", "sleep infinity;"]}, {}, Outcome.LOST),
        ({"command": ["sh", "-c"], "args": ["exec sleep 1d"]}, {}, Outcome.LOST),
        ({"command": ["tail", "-f", "/dev/null"]}, {}, Outcome.LOST),
        ({"args": ["train"]}, {}, Outcome.LOST),
        ({"command": ["/usr/sbin/sshd", "-De"]}, {"command": ["/usr/sbin/sshd", "-De"]}, None),
        ({"command": ["sh", "-c", "sleep 5 && serve"]}, {"command": ["sh", "-c", "sleep 5 && serve"]}, Outcome.TO_DO),
    ],
)
def test_worker_command_that_does_not_start_sshd_is_removed_or_reported(
    container: dict[str, Any], converted: dict[str, Any], outcome: Outcome | None
) -> None:
    pod, notes = changed("Worker", container)
    assert pod["containers"] == [converted]
    assert {note.outcome for note in notes} == ({outcome} if outcome else set())
    assert changed("Launcher", {"command": ["sleep", "1"]})[0]["containers"] == [{"command": ["sleep", "1"]}]


def test_service_account_of_the_launcher_is_reported() -> None:
    _, notes = changed("Launcher", {}, {"serviceAccountName": "mine"})
    assert [(note.outcome, note.field) for note in notes] == [(Outcome.CHANGED, "template.spec.serviceAccountName")]
    assert changed("Worker", {}, {"serviceAccountName": "mine"})[1] == []


ROLE = "training.kubeflow.org/job-role"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"matchLabels": {"mpi_job_name": "a"}}, {"matchLabels": {"training.kubeflow.org/job-name": "a"}}),
        ({"matchLabels": {"mpi_role_type": "worker"}}, {"matchLabels": {ROLE: "worker"}}),
        (
            {"matchLabels": {"group_name": "kubeflow.org", "app": "x"}},
            {"matchLabels": {"training.kubeflow.org/operator-name": "mpi-operator", "app": "x"}},
        ),
        ({"matchLabels": {ROLE: "master"}}, {"matchLabels": {ROLE: "launcher"}}),
        (
            {"matchExpressions": [{"key": "mpi_role_type", "operator": "In", "values": ["worker"]}]},
            {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker"]}]},
        ),
        ({"matchLabels": {"app": "x"}}, {"matchLabels": {"app": "x"}}),
    ],
)
@pytest.mark.parametrize("where", ["required", "preferred", "spread"])
def test_selectors_get_the_labels_of_v2beta1(where: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    def pod(selector: dict[str, Any]) -> dict[str, Any]:
        term = {"labelSelector": selector}
        if where == "spread":
            return {"topologySpreadConstraints": [term]}
        if where == "required":
            return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        weighted = {"weight": 1, "podAffinityTerm": term}
        return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}

    result, notes = changed("Worker", {}, pod(old))
    assert result == {"containers": [{}], **pod(new)}
    assert [note.outcome for note in notes] == [Outcome.MAPPED] * (old != new)
