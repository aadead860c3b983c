"""The demo and kubectl show the same text for every example if the service cannot read the cluster."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.deployment import SPACE
from tests.support.paths import EXAMPLES
from webhook.installation import registration

EXPECTED = sorted(path.name for path in EXAMPLES.glob("*.yaml"))


@pytest.fixture(scope="module")
def limited_service(cluster: Cluster) -> Iterator[None]:
    """Registers a service that may read only namespaces, because the demo has no cluster."""
    nobody = cluster.kubeconfig_for("nobody")
    cluster.kubectl("create", "clusterrole", "namespace-reader", "--verb=get", "--resource=namespaces")
    cluster.kubectl("create", "clusterrolebinding", "nobody", "--clusterrole=namespace-reader", "--user=nobody")
    with service.running(cluster, "--kubeconfig", str(nobody), name="limited", register=False) as replica:
        client = registration.by_url(replica.url, replica.ca_file.read_bytes())
        made = list(registration.configurations(client, labels={}, policy_namespace=SPACE))
        cluster.apply(made)
        try:
            probe = ("create", "--dry-run=server", "-f", str(EXAMPLES / "bad-name.yaml"))
            cluster.wait_for("the hooks", lambda: "[upstream-contract]" in cluster.kubectl(*probe, check=False).stderr)
            yield
        finally:
            for kind in registration.RESOURCES:
                cluster.kubectl("delete", kind, registration.NAME)


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """The demo's output for each example: full for the first rejected and first admitted job, a line for the rest."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "webhook", "demo"], capture_output=True, text=True, check=True, timeout=60
    )
    other = r"^(\S+\.yaml): (.+)\n"
    without = re.sub(other, "", done.stdout, flags=re.MULTILINE)
    in_full = re.findall(r"^\$ kubectl apply -f (\S+)\n(.+?)\n\n", without, re.MULTILINE | re.DOTALL)
    return dict(in_full) | dict(re.findall(other, done.stdout, re.MULTILINE))


@pytest.mark.parametrize("name", EXPECTED)
def test_demo_shows_the_same_text_as_kubectl(
    cluster: Cluster, limited_service: None, shown: dict[str, str], name: str
) -> None:
    done = cluster.kubectl("create", "--dry-run=server", "-f", str(EXAMPLES / name), check=False)
    text = f"{done.stderr}{done.stdout}".replace(" (server dry run)", "")
    lines = [line.rstrip() for line in text.splitlines()]
    if "\n" not in shown[name]:
        assert [line for line in lines if line.endswith(shown[name])]
        return
    if not shown[name].startswith("Warning: "):
        lines = [line for line in lines if not line.startswith("Warning: ")]
    assert shown[name].splitlines() == lines
