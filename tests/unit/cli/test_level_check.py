"""`mpijob-webhook check --level` checks any workload against a Pod Security level, without a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from tests.support import checking
from tests.support.jobs import GOOD, changed
from tests.support.pod_security.pods import COMPLIANT
from tests.support.strategies import PROPERTY, json_values
from webhook.cli.files import Manifest
from webhook.cli.level_check import TEMPLATES, check, parse
from webhook.predict.pod_security import LATEST, Level, LevelVersion, Version

HOST = {"hostNetwork": True, "containers": [{"name": "a", "securityContext": COMPLIANT}]}
FAULT = "host namespaces (hostNetwork=true)"
RESTRICTED = LevelVersion(Level.RESTRICTED, LATEST)


def run(tmp_path: Path, *documents: Any, level: str = "restricted", flags: tuple[str, ...] = ()) -> Result:
    """Run the command on a file with these objects."""
    file = tmp_path / "objects.yaml"
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    return checking.run("check", "--level", level, *flags, str(file))


def workload(api_version: str, kind: str, steps: tuple[str, ...], spec: Any, **metadata: str) -> dict[str, Any]:
    """An object with a pod template at the path `steps`."""
    value: Any = {"spec": spec}
    for step in reversed(steps):
        value = {step: value}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **metadata}, **value}


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "Pod", ""),
        ("v1", "PodTemplate", "template"),
        ("v1", "ReplicationController", "spec.template"),
        ("apps/v1", "DaemonSet", "spec.template"),
        ("apps/v1", "Deployment", "spec.template"),
        ("apps/v1", "ReplicaSet", "spec.template"),
        ("apps/v1", "StatefulSet", "spec.template"),
        ("batch/v1", "CronJob", "spec.jobTemplate.spec.template"),
        ("batch/v1beta1", "CronJob", "spec.jobTemplate.spec.template"),
        ("batch/v1", "Job", "spec.template"),
        ("kubeflow.org/v2beta1", "MPIJob", "spec.mpiReplicaSpecs.Launcher.template"),
        ("kubeflow.org/v1", "MPIJob", "spec.mpiReplicaSpecs.Worker.template"),
    ],
)
def test_pods_of_every_kind_are_checked(tmp_path: Path, api_version: str, kind: str, path: str) -> None:
    steps = tuple(filter(None, path.split(".")))
    shown = path.replace(".Launcher", "[Launcher]").replace(".Worker", "[Worker]")
    (verdict,) = json.loads(
        run(tmp_path, workload(api_version, kind, steps, HOST), level="restricted@v1.30", flags=("-o", "json")).stdout
    )
    assert (verdict["kind"], verdict["name"], verdict["namespace"], verdict["allowed"]) == (kind, "x", "default", False)
    (cause,) = verdict["causes"]
    assert (cause["rule"], cause["check"]) == ("pod-security", "hostNamespaces")
    assert cause["field"] == f"{shown}.spec.hostNetwork".lstrip(".")
    assert cause["message"].startswith(f"{FAULT}. Remove hostNetwork: ")
    message = f'violates PodSecurity "restricted:v1.30": {FAULT}'
    assert verdict["message"] == (f"{shown}: {message}" if path else message)
    good = {"containers": HOST["containers"]}
    assert run(tmp_path, workload(api_version, kind, steps, good)).exit_code == 0


def test_there_is_a_test_for_every_kind() -> None:
    assert len(TEMPLATES) == 10


def test_text_output(tmp_path: Path) -> None:
    documents = (
        workload("apps/v1", "Deployment", ("spec", "template"), HOST, namespace="team"),
        workload("v1", "Pod", (), {"containers": HOST["containers"]}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "batch.volcano.sh/v1", "kind": "Job", "metadata": {"name": "v"}},
    )
    result = run(tmp_path, *documents, level="baseline")
    source = tmp_path / "objects.yaml"
    assert result.exit_code == 1
    assert result.stdout == (
        f"{source}: Deployment team/x: not within baseline:latest\n"
        f"  1. spec.template.spec.hostNetwork: {FAULT}\n"
        "     Remove hostNetwork: pods reach each other without it. For RDMA request a device resource such as "
        "rdma/hca, or a secondary network.\n"
        "\n"
        f"{source}: Pod default/x: within baseline:latest\n"
        "\n"
        "2 objects: 1 within baseline:latest, 1 not\n"
    )
    assert result.stderr == f"{source}: skipped ConfigMap c\n{source}: skipped Job v\n"


def test_both_roles_of_a_job_are_checked_without_injections(tmp_path: Path) -> None:
    (verdict,) = json.loads(run(tmp_path, GOOD, flags=("-o", "json", "-n", "other")).stdout)
    assert verdict["namespace"] == "team-a"
    roles = [cause["field"].partition(".template")[0] for cause in verdict["causes"]]
    assert roles == ["spec.mpiReplicaSpecs[Launcher]"] * 4 + ["spec.mpiReplicaSpecs[Worker]"] * 4
    assert verdict["message"].count("\n") == 1
    context = "template.spec.containers.0.securityContext"
    secure = changed({f"Launcher.{context}": COMPLIANT, f"Worker.{context}": COMPLIANT})
    assert run(tmp_path, secure).exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("baseline@latest", LevelVersion(Level.BASELINE, LATEST)),
        ("restricted@v1.30", LevelVersion(Level.RESTRICTED, Version(30))),
        ("privileged@v1.0", LevelVersion(Level.PRIVILEGED, Version(0))),
    ],
)
def test_valid_level_is_parsed(text: str, expected: LevelVersion) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("strict", "the level must be one of privileged, baseline, restricted"),
        ("restricted@1.30", 'the version must be "latest" or "v1.x"'),
        ("restricted:v1.30", "the level must be one of privileged, baseline, restricted"),
    ],
)
def test_invalid_level_is_rejected(tmp_path: Path, text: str, problem: str) -> None:
    result = run(tmp_path, workload("v1", "Pod", (), HOST), level=text)
    assert result.exit_code == 2
    assert result.stderr == f'error: --level: "{text}" is not a level such as restricted@v1.30: {problem}\n'
    assert result.stdout == ""


def test_file_without_pods_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path, {"apiVersion": "v1", "kind": "ConfigMap"}, flags=("-o", "json"))
    assert (result.exit_code, result.stdout) == (2, "[]\n")
    assert result.stderr == f"error: no pods in {tmp_path / 'objects.yaml'}\n"


@pytest.mark.parametrize("flag", ["--policy", "--cluster", "--ignore-others"])
def test_level_cannot_be_combined_with_options_for_jobs(tmp_path: Path, flag: str) -> None:
    result = run(tmp_path, workload("v1", "Pod", (), HOST), flags=(flag, str(tmp_path / "objects.yaml")))
    assert result.exit_code == 2
    assert "cannot be combined with --policy, --cluster, --kubeconfig, --trainer or --ignore-others" in result.stderr


@pytest.mark.parametrize(
    ("document", "field", "fault"),
    [
        ({"spec": "x"}, "spec.template", "spec must be a mapping"),
        ({"spec": {"template": []}}, "spec.template", "must be a mapping, not a list"),
        (
            {"spec": {"template": {"spec": {"hostPID": 1}}}},
            "spec.template.spec.hostPID",
            "must be true or false, not a",
        ),
    ],
)
def test_wrong_type_is_a_violation(tmp_path: Path, document: Any, field: str, fault: str) -> None:
    result = run(tmp_path, {"apiVersion": "apps/v1", "kind": "Deployment", **document})
    assert result.exit_code == 1
    assert f"\n  1. {field}: {fault}" in result.stdout
    assert "     Correct the type.\n" in result.stdout


def test_object_without_a_template_is_valid(tmp_path: Path) -> None:
    assert run(tmp_path, {"apiVersion": "apps/v1", "kind": "Deployment"}).exit_code == 0


@PROPERTY
@given(st.sampled_from(sorted(TEMPLATES)), json_values(), json_values(), st.booleans())
def test_object_with_any_values_gets_a_verdict(key: tuple[str, str], value: Any, metadata: Any, deep: bool) -> None:
    group, kind = key
    steps = TEMPLATES[key][0]
    for step in reversed(steps[1:] if deep else steps[:0]):
        value = {step: value}
    document = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, "spec": value}
    manifest = Manifest("file.yaml", document)
    verdict = check(manifest, RESTRICTED)
    assert verdict is not None
    assert list(verdict.as_text())
    assert verdict.as_json()["allowed"] is (not verdict.message and not verdict.causes)
