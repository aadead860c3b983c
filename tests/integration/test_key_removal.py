"""`serve --remove-keys` deletes the keys of a finished job, and the operator does not create them again."""

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.support.installation import service
from tests.support.installation.service import example
from tests.support.installation.ssh_secrets import PI, keys_of, suspended


@pytest.mark.timeout(300)
def test_keys_of_a_finished_job_are_deleted(operator_cluster: Cluster, namespace: str) -> None:
    def names() -> list[str]:
        return operator_cluster.kubectl("get", "secrets", "-n", namespace, "-o", "name").stdout.split()

    def ended() -> bool:
        return has_condition(operator_cluster.get("mpijob", "pi", "-n", namespace), "Succeeded")

    with service.running(operator_cluster, "--remove-keys"):
        for job in (suspended(namespace, "later"), example(PI, namespace=namespace)):
            operator_cluster.kubectl("create", "-f", "-", stdin=job)
        keys_of(operator_cluster, namespace, ["later"])
        operator_cluster.wait_for("the job to end", ended, timeout=120)
        operator_cluster.wait_for("its keys to be deleted", lambda: names() == ["secret/later-ssh"], timeout=60)

        # The operator reconciles the job once more, and does not create the keys again.
        synced = f"Successfully synced '{namespace}/pi'"
        before = operator_cluster.programs["mpi-operator"].log.read_text().count(synced)
        operator_cluster.kubectl("label", "mpijob", "pi", "a=b", "-n", namespace)
        log = operator_cluster.programs["mpi-operator"].log
        operator_cluster.wait_for("the operator", lambda: log.read_text().count(synced) > before)
        assert names() == ["secret/later-ssh"]
