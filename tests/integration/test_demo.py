"""The demo shows of every example what kubectl shows where the service knows nothing of the cluster."""

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
def unknowing(cluster: Cluster) -> Iterator[None]:
    """The service, called by the API server and allowed to read namespaces alone, as the demo has no cluster."""
    nobody = cluster.kubeconfig_for("nobody")
    cluster.kubectl("create", "clusterrole", "namespace-reader", "--verb=get", "--resource=namespaces")
    cluster.kubectl("create", "clusterrolebinding", "nobody", "--clusterrole=namespace-reader", "--user=nobody")
    with service.running(cluster, "--kubeconfig", str(nobody), name="unknowing", register=False) as replica:
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
    """What the demo shows below `$ kubectl apply -f FILE`, by file; of later admitted jobs that is one line."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "webhook", "demo"], capture_output=True, text=True, check=True, timeout=60
    )
    found = {}
    for part in done.stdout.split("\n$ kubectl apply -f ")[1:]:
        name, _, text = part.partition("\n")
        found[name] = text.partition("\n\n")[0]
    later = re.findall(r"^(\S+ created) \((\S+)\)$", done.stdout, re.MULTILINE)
    return found | {name: line for line, name in later}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_is_shown_as_kubectl_shows_it(
    cluster: Cluster, unknowing: None, shown: dict[str, str], name: str
) -> None:
    done = cluster.kubectl("create", "--dry-run=server", "-f", str(EXAMPLES / name), check=False)
    text = f"{done.stderr}{done.stdout}".replace(" (server dry run)", "")
    lines = [line.rstrip() for line in text.splitlines()]
    if "\nWarning: " not in f"\n{shown[name]}":
        lines = [line for line in lines if not line.startswith("Warning: ")]
    ours = [line for line in shown[name].splitlines() if not line.endswith(".yaml)")]
    assert ours == lines
