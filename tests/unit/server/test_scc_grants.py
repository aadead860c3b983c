"""A review on OpenShift queries which SCCs (SecurityContextConstraints) the pods may use, within a time limit."""

import asyncio
from base64 import b64decode
from typing import Any

import pytest

from tests.support import jobs
from tests.support.live_service import live
from tests.support.openshift import DEFAULT_SCCS, project
from webhook.client.calls import ClusterError
from webhook.client.scc_grants import GrantsReader
from webhook.cluster.snapshot import Snapshot

KNOWN = Snapshot([project(), *DEFAULT_SCCS])
CONTEXT = "Worker.template.spec.containers.0.securityContext"
SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
AS_1000 = jobs.body(
    jobs.changed(
        {
            "spec.sshAuthMountPath": "/home/mpiuser/.ssh",
            "Worker.template.spec.containers.0.command": SSHD,
            CONTEXT: {"runAsUser": 1000},
        }
    )
)


class Cluster:
    """A cluster in which everyone may use these SCCs."""

    def __init__(self, *names: str, answers: str = "at once") -> None:
        self.names, self.answers, self.asked = names, answers, 0
        self.grants = GrantsReader(self, KNOWN)  # type: ignore[arg-type]

    async def request(self, method: str, path: str, body: Any) -> Any:
        self.asked += 1
        if self.answers == "never":
            await asyncio.Event().wait()
        if self.answers == "an error":
            raise ClusterError("it is away")
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["name"] in self.names}}


def judged(cluster: Cluster) -> Any:
    with live() as service:
        service.service.handler.view, service.service.handler.cluster = KNOWN, cluster
        return [service.post(path, AS_1000) for path in ("/mutate-mpijob?timeout=2s", "/validate-mpijob?timeout=2s")]


@pytest.mark.parametrize(("names", "allowed"), [(["restricted-v2"], False), (["restricted-v2", "nonroot-v2"], True)])
def test_permitted_sccs_of_the_pods_decide_whether_the_job_is_admitted(names: list[str], *, allowed: bool) -> None:
    cluster = Cluster(*names)
    _, validated = judged(cluster)
    assert validated.answer["allowed"] is allowed
    assert allowed or "add-scc-to-user nonroot-v2" in validated.answer["status"]["message"]
    accounts = 3  # the pods' ServiceAccount, and the accounts that create pods
    assert cluster.asked == accounts * len(DEFAULT_SCCS), "mutation and validation together query each SCC once"


def test_injection_uses_the_sccs_of_the_pods() -> None:
    mutated, _ = judged(Cluster("restricted-v2", "restricted-v3"))
    assert b"hostUsers" in b64decode(mutated.answer["patch"])


@pytest.mark.parametrize("answers", ["never", "an error"])
def test_job_passes_if_the_api_server_does_not_answer(answers: str) -> None:
    for response in judged(Cluster(answers=answers)):
        assert (response.status, response.answer["allowed"]) == (200, True)
