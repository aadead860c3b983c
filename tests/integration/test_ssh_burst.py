"""Each of many simultaneous jobs gets a different key, and deleting the jobs deletes the keys.

MPIJOB_SSH_JOBS sets the number of jobs; `make burst` creates a thousand. There must be more jobs than spare keys.
"""

import os

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of, suspended

JOBS = int(os.environ.get("MPIJOB_SSH_JOBS", "12"))
READY = 4  # spare keys (128 in the manifests); further jobs wait until their key is generated


@pytest.mark.timeout(240 + JOBS)
def test_each_of_many_simultaneous_jobs_has_a_different_key(operator_cluster: Cluster, namespace: str) -> None:
    names = [f"job-{number}" for number in range(JOBS)]
    flags = ("--ssh-keys-ready", str(READY), "--ssh-keys-rate", "100")
    with service.running(operator_cluster, *flags):
        jobs = [suspended(namespace, name) for name in names]
        operator_cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": jobs})
        keys = keys_of(operator_cluster, namespace, names, timeout=100 + JOBS)
        reviews = [line for line in service.decisions(operator_cluster) if line["webhook"] == "ssh-keys"]
    uids = {
        job["metadata"]["name"]: job["metadata"]["uid"]
        for job in operator_cluster.get("mpijobs", "-n", namespace)["items"]
    }
    assert {name: stored.owner_uid for name, stored in keys.items()} == uids
    assert [name for name in names if keys[name].words[2:] != [f"mpijob/{namespace}/{name}"]] == []
    assert [name for name in names if not keys[name].is_rsa_4096_pair()] == []
    assert len({stored.private for stored in keys.values()}) == JOBS
    assert len({stored.words[1] for stored in keys.values()}) == JOBS
    assert {line["name"] for line in reviews if line["injected"]} == {f"{name}-ssh" for name in names}

    operator_cluster.kubectl("delete", "mpijobs", "--all", "-n", namespace, "--wait=false")
    secrets = ["secrets", "-n", namespace]
    # The garbage collector discovers a new kind within half a minute.
    operator_cluster.wait_for(
        "the keys to be deleted", lambda: not operator_cluster.get(*secrets)["items"], timeout=120
    )
