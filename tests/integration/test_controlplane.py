"""Tests of the test cluster: it starts, runs the real programs, and leaves no processes behind."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.nodes import KEEP_RUNNING
from tests.controlplane.process import ControlPlaneError
from tests.support.rare import rare

EXAMPLES = ["pi", "pi-intel", "pi-mpich", "tensorflow-benchmarks", "tensorflow-mnist"]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pi(cluster: Cluster, **launcher_annotations: str) -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load(cluster.assets.upstream_examples["pi"].read_text())
    template = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    template["metadata"] = {"annotations": launcher_annotations}
    return job


def test_server_has_the_pinned_version(cluster: Cluster) -> None:
    versions = json.loads(cluster.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"].startswith("v1.")
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]


def test_every_part_is_ready(cluster: Cluster) -> None:
    assert cluster.kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert has_condition(cluster.get("crd", "mpijobs.kubeflow.org"), "Established")
    assert all(program.running for program in cluster.programs.values())


def test_all_upstream_examples_are_listed(cluster: Cluster) -> None:
    assert sorted(cluster.assets.upstream_examples) == EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_upstream_example_applies(cluster: Cluster, namespace: str, example: str) -> None:
    done = cluster.kubectl("apply", "-n", namespace, "-f", cluster.assets.upstream_examples[example])
    assert re.fullmatch(r"mpijob.kubeflow.org/\S+ created", done.stdout.strip())


@pytest.mark.parametrize(
    "what",
    [
        ("ns",),
        ("namespace/default",),
        ("clusterroles", "view"),
        ("mpijobs.kubeflow.org", "-A"),
        ("mpijobs.v2beta1.kubeflow.org", "-n", "kube-system"),
        ("svc", "-n", "default", "-l", "component=apiserver"),
        ("events", "-A", "--field-selector=type=Warning"),
        ("crd", "mpijobs.kubeflow.org"),
    ],
    ids=" ".join,
)
def test_get_returns_the_same_objects_as_kubectl(cluster: Cluster, what: tuple[str, ...]) -> None:
    def same() -> bool:
        shown = json.loads(cluster.kubectl("get", *what, "-o", "json").stdout)
        found = cluster.get(*what)
        return bool(found.get("items", found) == shown.get("items", shown))

    # Namespaces of other tests may end between the two calls.
    cluster.wait_for("the same", same)


@pytest.mark.parametrize("what", [("namespace", "nothing"), ("nothings",)], ids=" ".join)
def test_missing_object_is_reported(cluster: Cluster, what: tuple[str, ...]) -> None:
    with pytest.raises(ControlPlaneError, match="nothing"):
        cluster.get(*what)


def test_users_have_only_granted_permissions(cluster: Cluster, namespace: str) -> None:
    alice = cluster.kubeconfig_for("alice", ["researchers"])
    assert cluster.kubeconfig_for("alice") != alice
    who = json.loads(cluster.kubectl("auth", "whoami", "-o", "json", kubeconfig=alice).stdout)["status"]["userInfo"]
    assert (who["username"], "researchers" in who["groups"]) == ("alice", True)
    with pytest.raises(ControlPlaneError, match='User "alice" cannot list resource "mpijobs"'):
        cluster.kubectl("get", "mpijobs", "-n", namespace, kubeconfig=alice)


def test_audit_log_has_each_request(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=pi(cluster) | {"metadata": {"name": "requested-once"}})
    events = cluster.wait_for("the audit event", lambda: cluster.audit_events("requested-once"))
    assert [(event["verb"], event["user"]["username"]) for event in events] == [("create", "admin")]


def test_job_runs_to_succeeded(operator_cluster: Cluster, namespace: str) -> None:
    cluster = operator_cluster
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=pi(cluster))
    cluster.wait_for("the job", lambda: has_condition(cluster.get("mpijob", "pi", "-n", namespace), "Succeeded"))


def test_job_can_be_kept_running(operator_cluster: Cluster, namespace: str) -> None:
    cluster = operator_cluster
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=pi(cluster, **{KEEP_RUNNING: "true"}))
    cluster.wait_for("the job", lambda: has_condition(cluster.get("mpijob", "pi", "-n", namespace), "Running"))
    (launcher,) = cluster.get("pods", "-n", namespace, "-l", "training.kubeflow.org/job-role=launcher")["items"]
    assert launcher["status"]["phase"] == "Running"
    assert launcher["spec"]["nodeName"].startswith("gpu-")


@pytest.mark.cluster
@rare
def test_restarted_apiserver_keeps_its_data_and_nothing_outlives_stop() -> None:
    with Cluster() as cluster:
        namespace = cluster.create_namespace()
        cluster.stop_apiserver()
        assert "kube-apiserver" not in cluster.programs
        with pytest.raises(ControlPlaneError, match="refused"):
            cluster.get("namespace", namespace)
        cluster.start_apiserver()
        assert cluster.get("namespace", namespace)["metadata"]["name"] == namespace
        pids = [program.pid for program in cluster.programs.values()]
        folder = cluster.dir
    assert len(pids) == 3
    assert [pid for pid in pids if not gone(pid)] == []
    assert not folder.exists()
    cluster.stop()  # a second stop does nothing


@pytest.mark.cluster
@rare
def test_kubebuilder_assets_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = assets()
    for name, command in {"etcd": own.etcd, "kube-apiserver": own.apiserver, "kubectl": (str(own.kubectl),)}.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ntouch "$0.used"\nexec {" ".join(command)} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with ControlPlane(controller_manager=False) as plane:
        assert plane.kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert sorted(path.stem for path in tmp_path.glob("*.used")) == ["etcd", "kube-apiserver", "kubectl"]
    assert assets().controller_manager == own.controller_manager


@pytest.mark.cluster
def test_failed_part_is_reported_with_its_log() -> None:
    with pytest.raises(ControlPlaneError, match=r"kube-apiserver ended while starting(.|\n)*no-such-mode"):
        ControlPlane(apiserver_flags=["--authorization-mode=no-such-mode"]).start()
