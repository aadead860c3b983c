"""`serve --client-ca` with a real API server, which sends the client certificate of its admission configuration."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.client_certificates import ClientCa
from tests.support.installation import service
from tests.support.installation.service import example

PI = assets().upstream_examples["pi"]
CA = ClientCa()
PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("client-ca")
    (made / "ca.crt").write_bytes(CA.pem)
    certificate, key = CA.pair(made, "kube-apiserver")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (made / "kubeconfig.yaml").write_text(json.dumps(kubeconfig))
    config = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(made / "kubeconfig.yaml"),
    }
    plugins = [{"name": name, "configuration": config} for name in PLUGINS]
    admission = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (made / "admission.yaml").write_text(json.dumps(admission))
    return made


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    flags = [f"--admission-control-config-file={folder / 'admission.yaml'}"]
    with Cluster(controller_manager=False, apiserver_flags=flags, log_dir=folder) as running:
        running.kubectl("create", "namespace", "team")
        yield running


def create(cluster: Cluster) -> str:
    job = example(PI, namespace="team")
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job, check=False)
    return done.stdout + done.stderr


@pytest.mark.timeout(180)
def test_api_server_with_the_right_client_certificate_is_accepted(cluster: Cluster, folder: Path) -> None:
    flags = ("--client-ca", str(folder / "ca.crt"), "--client-name", "kube-apiserver")
    with service.running(cluster, *flags) as replica:
        cluster.wait_for("the hooks to be called", lambda: "created" in create(cluster) or None)
        # A client without a certificate is rejected.
        with pytest.raises(OSError, match=r"certificate required|reset|EOF|closed"):
            service.review_of(replica, example(PI, namespace="team"))


@pytest.mark.timeout(180)
def test_certificate_with_a_different_name_is_rejected(cluster: Cluster, folder: Path) -> None:
    with service.running(cluster, "--client-ca", str(folder / "ca.crt"), "--client-name", "somebody-else"):
        words = "the client certificate names a different client"
        cluster.wait_for("the refusal", lambda: words in create(cluster) or None)
