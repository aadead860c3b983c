import asyncio

import pytest

from tests.support.logs import Log
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.companions.ssh.removal import KeyRemoval


class Api:
    """Notes what is asked for; `failures` by path are raised."""

    def __init__(self):
        self.calls = []
        self.failures = {}

    async def request(self, method, path, body=None):
        self.calls.append((method, path))
        if path in self.failures:
            raise self.failures[path]
        return {}


def job(name, condition=None, *, status="True", **metadata):
    conditions = [{"type": condition, "status": status}] if condition else []
    known = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", **metadata}
    kind = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    return {
        **kind,
        "metadata": known,
        "spec": {},
        "status": {"conditions": conditions, "completionTime": "2026-01-01T00:00:00Z"},
    }


def removal(api, *jobs):
    return KeyRemoval(api=api, view=Snapshot(jobs), log=Log())


def path(name):
    return "DELETE", f"/api/v1/namespaces/team-a/secrets/{name}-ssh"


@pytest.fixture
def api():
    return Api()


async def until(condition):
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)


async def test_only_the_keys_of_jobs_that_have_ended(api):
    jobs = [
        job("new"),
        job("running", "Running"),
        job("restarting", "Failed", status="False"),
        job("good", "Succeeded"),
        job("bad", "Failed"),
    ]
    await removal(api, *jobs).sweep()
    assert sorted(api.calls) == [path("bad"), path("good")]


async def test_each_once(api):
    made = removal(api, job("good", "Succeeded"))
    await made.sweep()
    await made.sweep()
    assert api.calls == [path("good")]
    assert made._log.lines == [("info", "SSH keys removed", {"namespace": "team-a", "job": "good"})]


async def test_another_job_of_the_same_name(api):
    made = removal(api, job("good", "Succeeded"))
    await made.sweep()
    made._view = Snapshot([job("good", "Succeeded", uid="another")])
    await made.sweep()
    assert api.calls == [path("good")] * 2
    assert made._done == {"another"}


async def test_what_is_gone_is_fine(api):
    api.failures[path("good")[1]] = ApiError(404, "not found")
    made = removal(api, job("good", "Succeeded"))
    await made.sweep()
    await made.sweep()
    assert api.calls == [path("good")]
    assert made._log.lines == []


@pytest.mark.parametrize("error", [ApiError(403, "you may not"), ClusterError("the API server does not answer")])
async def test_what_cannot_be_deleted_is_tried_again_and_told(api, error):
    api.failures[path("good")[1]] = error
    made = removal(api, job("good", "Succeeded"))
    task = asyncio.create_task(made.run(every=0))
    await until(lambda: len(api.calls) > 2)
    api.failures.clear()
    await until(lambda: made._log.told[-1] == "SSH keys removed")
    task.cancel()
    assert made._log.lines[0] == ("warning", "SSH keys of ended jobs are left", {"reason": str(error)})


async def test_nothing_is_known(api):
    made = KeyRemoval(api=api, view=NothingKnown(), log=Log())
    await made.sweep()
    assert api.calls == []
