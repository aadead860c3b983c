"""If the CRD has older versions, the API server calls the service to convert jobs.

The service writes its CA into the caBundle of the CRD.
"""

import base64
from contextlib import ExitStack

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SELF_MANAGED, SERVICE, SPACE, Deployment
from tests.support.installation.older_versions import CRD, container, horovod, read
from tests.support.rare import rare
from tools import older_versions_crd

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(300)]
# With these flags, the service checks the caBundle every six seconds.
LASTING = ("--leaf-lifetime", "60s", "--ca-grace", "1s", "--ca-lifetime", "1h")


def test_ca_bundle_of_the_crd_trusts_the_served_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=tmp_path_factory.mktemp("older-versions-trust")))
        deployment = Deployment(cluster, stack.enter_context(Balancer()))
        deployment.install()
        service = {"namespace": SPACE, "name": SERVICE, "port": deployment.balancer.port, "path": "/convert"}
        cluster.apply([older_versions_crd.crd({"service": service})])
        deployment.start(*SELF_MANAGED, *LASTING, "--conversion")
        namespace = cluster.create_namespace()
        job = horovod(namespace)
        created = lambda: cluster.kubectl("create", "-f", "-", stdin=job, check=False).returncode == 0  # noqa: E731
        cluster.wait_for("a job of v1 to be created", lambda: created() or None, timeout=120)
        assert "command" not in container(read(cluster, namespace, "horovod", "v2beta1"))
        found = cluster.get("crd", CRD)["spec"]["conversion"]["webhook"]["clientConfig"]
        assert base64.b64decode(found["caBundle"]) == deployment.bundle("validatingwebhookconfiguration")
