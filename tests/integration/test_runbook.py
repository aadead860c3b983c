"""The commands of the runbook work as described, on an installation with a real API server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.installation.deployment import SELF_MANAGED, SPACE
from tests.support.installation.installed_overlay import RUNBOOK, Installed, commands, installed
from tests.support.jobs import changed
from tests.support.policies import policy_configmap
from tests.support.rare import rare
from webhook.installation.registration import NAME, RESOURCES

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(180)]

# With these flags, the service checks its Secret every 3 seconds.
QUICK = ("--leaf-lifetime", "30s", "--ca-grace", "1s", "--ca-lifetime", "10m")
GOOD = changed({"metadata.namespace": "default"})
BAD = changed({"metadata.namespace": "default", "Worker.replicas": 1})


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("runbook"), *SELF_MANAGED, *QUICK) as made:
        yield made


def refusal(installation: Installed, job: dict[str, Any]) -> str:
    """kubectl's error for a rejected job; empty if the job is admitted."""
    done = installation.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job, check=False)
    return done.stderr if done.returncode else ""


@contextmanager
def down(installation: Installed) -> Iterator[None]:
    """The only replica is stopped until the block ends."""
    (backend,) = installation.balancer.backends
    installation.stop(backend)
    try:
        yield
    finally:
        installation.start(*SELF_MANAGED, *QUICK)


def findings(installation: Installed) -> set[str]:
    found = json.loads(installation.run("mpijob-webhook doctor -o json").stdout)["findings"]
    return {each["id"] for each in found if each["id"] and not each["id"].startswith("certificate-")}


def phase(installation: Installed) -> str:
    found: str = json.loads(installation.run("mpijob-webhook certs status -o json").stdout)["phase"]
    return found


def test_installation_by_the_runbook_is_healthy(installation: Installed) -> None:
    installation.cluster.wait_for("jobs", lambda: not refusal(installation, GOOD))
    assert findings(installation) == set()
    done = installation.run(next(line for line in commands("Install") if line.startswith("mpijob-webhook doctor")))
    assert "ok       probe " in done.stdout, done.stdout + done.stderr


def test_upgrade_to_the_same_version_changes_nothing(installation: Installed) -> None:
    serials = installation.serials()
    assert len(installation.follow("Upgrade", only="kubectl ")) == 3
    assert installation.serials() == serials, "the caBundles are unchanged"


def test_hooks_can_be_removed_and_restored(installation: Installed) -> None:
    opened = [line for line in commands("Take it out of the path") if line.startswith("kubectl patch")]
    gone = [line for line in commands("Take it out of the path") if line.startswith("kubectl delete")]
    back = [line for line in commands("Take it out of the path") if line.startswith("kubectl apply")]
    assert "worker" in refusal(installation, BAD)
    for out, found in (
        (opened, {"hook-fails-open"}),
        (gone, {"configuration-missing"}),
    ):
        for line in out:
            assert installation.run(line).returncode == 0
        assert findings(installation) == found
        with down(installation):
            assert not refusal(installation, BAD)
        for line in back:
            assert installation.run(line).returncode == 0
        installation.cluster.wait_for("the caBundles", lambda: "[worker-count]" in refusal(installation, BAD))
        assert findings(installation) == set()


def test_certificate_can_be_rotated_by_hand(installation: Installed) -> None:
    cluster = installation.cluster
    cluster.wait_for("no rotation in progress", lambda: phase(installation) == "steady")
    (before,) = installation.serials()
    rotate, status, restart, rolled_out, distrust = commands("Rotate a certificate by hand")[:5]
    assert installation.run(rotate).returncode == 0
    assert "damaged" not in installation.run(status).stdout, "a rotation by the runbook is not reported as damage"
    cluster.wait_for("a new CA", lambda: phase(installation) == "retiring")
    assert before in installation.serials(), "the old CA stays trusted"
    assert not refusal(installation, GOOD)
    for line in (restart, rolled_out, distrust):
        assert installation.run(line).returncode == 0, line
    cluster.wait_for("the old CA to be removed", lambda: before not in installation.serials())
    assert not refusal(installation, GOOD)


def test_deleted_ca_secret_can_be_restored(installation: Installed) -> None:
    before = installation.serials()
    line = "kubectl -n mpijob-webhook delete secret mpijob-webhook-ca"
    assert f"`{line}`" in RUNBOOK
    assert installation.run(line).returncode == 0
    assert "certificate-secret-missing" in installation.run("mpijob-webhook doctor").stdout
    assert not refusal(installation, GOOD)
    installation.follow("Install", only="kubectl apply -k manifests/overlays/mine")
    installation.cluster.wait_for("a CA", installation.secret)
    installation.cluster.wait_for("a new CA in the caBundles", lambda: installation.serials() - before)
    assert not refusal(installation, GOOD)


def test_uninstallation_removes_everything_and_saves_the_policies(installation: Installed) -> None:
    cluster = installation.cluster
    cluster.apply([policy_configmap("rules: {worker-count: {max: 3}}", namespace=SPACE)])
    assert cluster.kubectl("get", "configmap", "platform", "-n", SPACE).stdout
    installation.follow("Uninstall")
    for kind in RESOURCES:
        assert cluster.kubectl("get", kind, NAME, check=False).returncode != 0
    cluster.wait_for(
        "the namespace to be deleted", lambda: cluster.kubectl("get", "namespace", SPACE, check=False).returncode
    )
    assert not refusal(installation, BAD)
    assert "`policies.yaml`" in RUNBOOK.partition("## Uninstall")[2]
    saved = installation.checkout / "policies.yaml"
    assert "MPIJobPolicy" in saved.read_text(), (
        "the policies are deleted with the namespace, so the runbook saves them first"
    )
    installation.follow("Install", only="kubectl apply -k manifests/overlays/mine")
    apply = f"kubectl apply -f {saved.name}"
    cluster.wait_for("the kept policies", lambda: "created" in installation.run(apply).stdout or None)
