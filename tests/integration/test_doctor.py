"""`doctor` and `certs status` for an installation on a real API server, first healthy, then broken in many ways."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from certs.authority import Authority
from tests.controlplane.cluster import Cluster
from tests.support.installation.deployment import HOST, SECRET, SELF_MANAGED, SPACE
from tests.support.installation.installed_overlay import Installed, installed
from tests.support.object_api import kubeconfig
from webhook.cli.main import main
from webhook.installation.registration import NAME

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

VALIDATING = "validatingwebhookconfiguration"
FOREIGN = base64.b64encode(Authority("foreign", lifetime=timedelta(days=1)).certificate_pem).decode()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("doctor"), *SELF_MANAGED) as made:
        yield made


def run(cluster: Cluster, *arguments: str, kubeconfig: Path | None = None) -> Result:
    found = CliRunner().invoke(main, [*arguments, "--kubeconfig", str(kubeconfig or cluster.kubeconfig)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def report(cluster: Cluster, *arguments: str, kubeconfig: Path | None = None) -> tuple[dict[str, Any], int]:
    """The findings that are not `ok`, by id, and the exit code."""
    found = run(cluster, "doctor", "-o", "json", *arguments, kubeconfig=kubeconfig)
    findings = json.loads(found.stdout)["findings"]
    return {each["id"]: each for each in findings if each["severity"] != "ok"}, found.exit_code


def test_healthy_installation_has_no_problems(deployment: Installed) -> None:
    found = run(deployment.cluster, "doctor", "--probe", "default")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()[1:]
    assert [line for line in lines[:-1] if not line.startswith("ok")] == []
    assert lines[-1] == "9 ok"
    assert "2 of 2 replicas ready" in found.stdout
    assert "seen at 1 address; CA steady" in found.stdout
    status = run(deployment.cluster, "certs", "status")
    assert (status.exit_code, status.stdout.splitlines()[-1]) == (0, "nothing needs doing")
    assert status.stdout.count(": trusts what is served") == 2


def test_commands_write_nothing_to_the_cluster(deployment: Installed) -> None:
    kinds = (
        "mpijobs,secrets,configmaps,services,deployments,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    )
    form = "custom-columns=N:.metadata.name,V:.metadata.resourceVersion"

    def versions() -> str:
        return deployment.cluster.kubectl("get", kinds, "-A", "--no-headers", "-o", form).stdout

    before = versions()
    run(deployment.cluster, "doctor", "--probe", "default")
    run(deployment.cluster, "certs", "status")
    assert versions() == before


@pytest.fixture(scope="module")
def unattended(deployment: Installed, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An installation whose replica reads certificate files, so that the service repairs nothing that a test breaks."""
    folder = tmp_path_factory.mktemp("files")
    stored = deployment.secret()
    pair = Authority.load(stored["ca.crt"], stored["ca.key"]).issue([HOST], lifetime=timedelta(days=10))
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)
    for backend in list(deployment.balancer.backends):
        deployment.stop(backend)
    deployment.start("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key"))
    return deployment


@contextmanager
def restored(cluster: Cluster, kind: str, name: str, *namespace: str) -> Iterator[dict[str, Any]]:
    """Yields the object. At the end, the object is created again as it was."""
    found = cluster.get(kind, name, *namespace)
    found["metadata"] = {
        key: found["metadata"][key] for key in ("name", "namespace", "labels") if key in found["metadata"]
    }
    try:
        yield found
    finally:
        cluster.kubectl("delete", kind, name, *namespace, "--ignore-not-found")
        cluster.kubectl("create", "-f", "-", stdin=found)


def patch(path: str, value: Any) -> str:
    return json.dumps([{"op": "add", "path": path, "value": value}])


IN = ("-n", SPACE)
# One broken object of each kind that `doctor` reads. The unit tests cover all findings.
# Each case has the object to break, the patch (None deletes the object), and the id, a part of the text and a part of
# the fix of the expected finding.
BROKEN: dict[str, tuple[tuple[str, ...], str | None, str, str, str]] = {
    "a foreign CA": (
        (VALIDATING, NAME),
        patch("/webhooks/0/clientConfig/caBundle", FOREIGN),
        "certificate-broken",
        f"caBundle of {VALIDATING}s/{NAME} does not trust the served certificate",
        "use the same source for both",
    ),
    "no configuration": (
        (VALIDATING, NAME),
        None,
        "configuration-missing",
        "there is no ValidatingWebhookConfiguration: jobs are not checked and broken policies are not rejected",
        "kubectl apply -k manifests/overlays/mine",
    ),
    "the Secret is gone": (
        ("secret", SECRET, *IN),
        None,
        "certificate-secret-missing",
        "the Secret mpijob-webhook-ca does not exist in mpijob-webhook",
        "kubectl apply -k manifests/overlays/mine",
    ),
    "no Service": (("service", SPACE, *IN), None, "service-missing", "there is no Service", "kubectl apply"),
    "no right on the CA": (
        ("rolebinding", "mpijob-webhook-certificates", *IN),
        None,
        "right-essential",
        "get, patch secrets/mpijob-webhook-ca in mpijob-webhook: certificates are not renewed",
        "kubectl apply -k manifests/overlays/mine",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_object_is_reported_until_it_is_restored(unattended: Installed, case: str) -> None:
    target, change, id_, text, fix = BROKEN[case]
    cluster = unattended.cluster
    with restored(cluster, *target):
        if change is None:
            cluster.kubectl("delete", *target)
        else:
            cluster.kubectl("patch", *target, "--type=json", "-p", change)
        findings, code = report(cluster)
        status = run(cluster, "certs", "status")
    assert id_ in findings, findings
    assert text in findings[id_]["text"]
    assert fix in findings[id_]["fix"]
    assert code == any(each["severity"] == "problem" for each in findings.values())
    assert status.exit_code == id_.startswith("certificate-")
    after, code = report(cluster)
    assert (after, code) == ({}, 0), "no finding is left after the object is restored"


def test_unreachable_service_is_diagnosed(unattended: Installed) -> None:
    cluster = unattended.cluster
    (backend,) = unattended.balancer.backends
    unattended.balancer.backends.remove(backend)
    try:
        findings, code = report(cluster, "--probe", "default")
        status = run(cluster, "certs", "status")
        elsewhere, _ = report(cluster, "--address", f"127.0.0.1:{backend.port}")
    finally:
        unattended.balancer.backends.append(backend)
    assert code == 1
    assert 'failed calling webhook "validate.mpijob' in findings["probe-failed"]["text"]
    assert "port-forward" in findings["certificate-unseen"]["fix"]
    assert (status.exit_code, "cannot be seen from here" in status.stdout) == (0, True)
    assert elsewhere == {}


def test_inactive_feature_is_reported(unattended: Installed) -> None:
    cluster = unattended.cluster
    policy = {"policy.yaml": "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"}
    label = {"training.openshift.io/mpijob-policy": "true"}
    for metadata in (
        {"name": "forgotten", "namespace": SPACE},
        {"name": "lost", "namespace": "default", "labels": label},
    ):
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": policy}
        cluster.kubectl("create", "-f", "-", stdin=document)
    findings, code = report(cluster)
    again = findings["policy-unlabelled"]["fix"].partition(";")[0].split()[1:]
    cluster.kubectl(*again)
    afterwards, _ = report(cluster)
    cluster.kubectl("delete", "configmap", "forgotten", *IN)
    cluster.kubectl("delete", "configmap", "lost", "-n", "default")
    assert (set(findings), code) == ({"policy-unlabelled", "policy-elsewhere"}, 0)
    assert 'ConfigMap "forgotten" has a policy' in findings["policy-unlabelled"]["text"]
    assert 'policy "lost" in namespace default' in findings["policy-elsewhere"]["text"]
    assert "policy-unlabelled" not in afterwards


def test_every_finding_for_a_user_without_rights_is_unknown(unattended: Installed) -> None:
    """A missing permission is not reported as a problem of the installation."""
    kubeconfig = unattended.cluster.kubeconfig_for("nobody", [])
    findings, code = report(unattended.cluster, kubeconfig=kubeconfig)
    assert (code, {each["severity"] for each in findings.values()}) == (0, {"unknown"})
    out = run(unattended.cluster, "doctor", kubeconfig=kubeconfig).stdout
    print(out)  # noqa: T201
    assert 'no permission to list resource "mutatingwebhookconfigurations"' in out


def test_unreachable_api_server_is_an_error(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    for command in (["doctor"], ["certs", "status"]):
        found = CliRunner().invoke(main, [*command, "--kubeconfig", str(config)])
        assert (found.exit_code, found.stdout) == (2, "")
        assert "cannot reach the API server" in found.stderr
