"""The command `why`: its requests, output and exit codes. test_diagnosis.py tests the diagnosis."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from tests.support.checking import run
from tests.support.jobs import REMOVE
from tests.support.object_api import FakeApi, fake_api, kubeconfig
from tests.support.stuck.real_logs import LOGS
from tests.support.stuck.seen import HOUR_AGO, JOB_UID, UID, container, event, job, launcher, pod, true
from webhook.cli.main import main
from webhook.parts.why.reader import SightReader

SPACE = "/api/v1/namespaces/team-a"
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"


class Cluster:
    """A fake API server, and the command `why` with a kubeconfig for this server."""

    def __init__(self, api: FakeApi, config: Path) -> None:
        self.api = api
        self.config = config

    def set_list(self, path: str, *items: Any) -> None:
        self.api.objects[path] = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [*items]}

    def why(self, *arguments: str) -> Result:
        return run("why", *arguments, "--kubeconfig", str(self.config))


def owned(resource: dict[str, Any], uid: str) -> dict[str, Any]:
    resource["metadata"]["ownerReferences"] = [{"uid": uid, "controller": True}]
    return resource


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster in which the job `train` runs."""
    with fake_api() as api:
        cluster = Cluster(api, kubeconfig(tmp_path / "config", api.url))
        running = job({}, true("Running"))
        api.objects[f"{JOBS}/train"] = running
        cluster.set_list(JOBS, running)
        api.objects["/apis/batch/v1/namespaces/team-a/jobs/train-launcher"] = owned(launcher(), UID)
        workers = [owned(pod(f"train-worker-{index}"), UID) for index in range(2)]
        cluster.set_list(f"{SPACE}/pods", owned(pod("train-launcher-abcde"), JOB_UID), *workers)
        cluster.set_list(f"{SPACE}/events")
        yield cluster


def test_stuck_job_is_reported_as_text_and_as_json(cluster: Cluster) -> None:
    waiting = container(waiting={"reason": "ErrImagePull", "message": "no such host"})
    cluster.set_list(f"{SPACE}/pods", owned(pod("train-worker-0", waiting, phase="Pending"), UID))
    result = cluster.why("train", "-n", "team-a")
    assert result.exit_code == 1
    text = "train-worker-0: image registry.example.com/a:1 cannot be pulled: no such host"
    assert result.stdout.splitlines()[:5] == [
        f"team-a/train does not run: {text}",
        "",
        f"1. {text}",
        "   seen in: Pod train-worker-0, container main",
        "   to do: Correct the image's name and tag; for a private registry name a Secret in imagePullSecrets.",
    ]
    answer = json.loads(cluster.why("team-a/train", "-o", "json").stdout)
    keys = ["namespace", "name", "state", "text", "causes", "workers", "warnings", "place", "notRead", "notJudged"]
    assert list(answer) == keys
    assert answer["workers"] == {"wanted": 2, "ready": 0}
    assert (answer["state"], answer["text"], answer["place"]) == ("stuck", f"does not run: {text}", None)
    assert answer["causes"][0] == {
        "id": "image",
        "stage": "start",
        "text": text,
        "where": "Pod train-worker-0, container main",
        "fix": "Correct the image's name and tag; for a private registry name a Secret in imagePullSecrets.",
        "passes": False,
    }


def test_newest_warning_event_of_a_reason_is_listed_after_the_causes(cluster: Cluster) -> None:
    newest = event("train", "TimeLimitNear", "80 % are over.", type="Warning")
    earlier = event("train", "TimeLimitNear", "x", type="Warning", at="2026-11-22T10:00:00Z")
    cluster.set_list(f"{SPACE}/events", earlier, newest, event("train", "MPIJobRunning", "x", type="Normal"))
    lines = cluster.why("team-a/train").stdout.splitlines()
    (line,) = lines[lines.index("warnings of the cluster:") + 1 :][:1]
    assert line.endswith(" ago, MPIJob train: TimeLimitNear: 80 % are over")
    assert json.loads(cluster.why("team-a/train", "-o", "json").stdout)["warnings"] == [
        {"kind": "MPIJob", "name": "train", "reason": "TimeLimitNear", "message": "80 % are over."}
    ]


def test_pods_and_events_of_a_deleted_job_with_the_same_name_are_ignored(cluster: Cluster) -> None:
    cluster.set_list(f"{SPACE}/pods", owned(pod("train-worker-0", phase="Failed"), "of-the-deleted-job"))
    gone = event("train", "ErrResourceExists", "x")
    gone["involvedObject"]["uid"] = "of-the-deleted-job"
    cluster.set_list(f"{SPACE}/events", gone)
    result = cluster.why("team-a/train")
    assert (result.exit_code, "0 of 2 workers ready" in result.stdout) == (0, True)


FAILED = container(terminated={"exitCode": 1, "reason": "Error"})
FAILED_LAUNCHER = owned(pod("train-launcher-abcde", FAILED, phase="Failed"), JOB_UID)


def test_log_of_a_failed_launcher_is_read_and_a_missing_permission_is_reported(cluster: Cluster) -> None:
    cluster.set_list(f"{SPACE}/pods", FAILED_LAUNCHER)
    log = f"{SPACE}/pods/train-launcher-abcde/log"
    cluster.api.objects[log] = {"log": "a@train-worker-0: Permission denied (publickey)."}
    assert "the key of the launcher is not accepted" in cluster.why("team-a/train").stdout.partition("\n")[0]
    cluster.api.refusals["GET", log] = (403, 'pods "x" is forbidden: User "a" cannot get resource "pods/log"')
    result = cluster.why("team-a/train").stdout
    assert "container main ended with exit code 1" in result.partition("\n")[0]
    assert "not read: log of train-launcher-abcde (no permission to get resource " in result


def test_log_of_a_workers_sshd_gives_the_cause(cluster: Cluster) -> None:
    worker = pod("train-worker-0", container(running={"startedAt": HOUR_AGO}), conditions=[true("Ready")])
    cluster.set_list(f"{SPACE}/pods", FAILED_LAUNCHER, owned(worker, UID))
    for name, log in (("train-launcher-abcde", "wrong-key.mpich"), ("train-worker-0", "strict-modes.openmpi-4")):
        cluster.api.objects[f"{SPACE}/pods/{name}/log"] = {"log": (LOGS / f"{log}.log").read_text()}
    line = cluster.why("team-a/train").stdout.partition("\n")[0]
    assert line.endswith("sshd does not accept the key, since other users may write to /root/.ssh")


def test_control_characters_in_the_log_of_a_running_init_container_are_removed(cluster: Cluster) -> None:
    inits = [{"name": "wait", "state": {"running": {"startedAt": HOUR_AGO}}}]
    cluster.set_list(f"{SPACE}/pods", owned(pod("train-launcher-abcde", inits=inits, phase="Pending"), JOB_UID))
    cluster.api.objects[f"{SPACE}/pods/train-launcher-abcde/log"] = {"log": "\x1b[1mwaits for \ufffdh\x00ost\x1b[0m\n"}
    result = cluster.why("team-a/train").stdout
    assert re.search(r"init container wait has not ended after \w+; its last line is: waits for host\n", result)
    assert "\ufffd" not in result


def test_events_of_a_replaced_worker_are_used_unless_they_are_older_than_the_job(cluster: Cluster) -> None:
    workers = [owned(pod(f"train-worker-{index}"), UID) for index in range(2)]
    cluster.set_list(f"{SPACE}/pods", FAILED_LAUNCHER, *workers)
    lost = event("train-worker-1", "Preempted", "Preempted by pod x", kind="Pod", type="Normal")
    lost["involvedObject"]["uid"] = "of-the-former-worker"
    cluster.set_list(f"{SPACE}/events", lost)
    cause = "train-worker-1: it was preempted by a pod with a higher priority"
    assert cause in cluster.why("team-a/train").stdout.partition("\n")[0]
    cluster.set_list(f"{SPACE}/events", {**lost, "lastTimestamp": "2026-11-22T10:00:00Z"})
    assert cause not in cluster.why("team-a/train").stdout


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (f"{SPACE}/pods", "pods"),
        (f"{SPACE}/events", "events"),
        ("/apis/batch/v1/namespaces/team-a/jobs/train-launcher", "jobs"),
        ("/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads", "workloads"),
    ],
)
def test_forbidden_resource_is_reported_with_exit_code_0(cluster: Cluster, path: str, resource: str) -> None:
    cluster.api.refusals["GET", path] = (403, f'{resource} is forbidden: User "a" cannot list resource "{resource}"')
    result = cluster.why("team-a/train")
    assert result.exit_code == 0
    assert result.stdout.startswith("team-a/train runs since 2026-11-22 11:00:00Z (")
    assert f'not read: {resource} (no permission to list resource "{resource}")' in result.stdout
    report = json.loads(cluster.why("team-a/train", "-o", "json").stdout)
    assert report["notRead"] == {resource: f'no permission to list resource "{resource}"'}


def test_forbidden_job_gives_exit_code_2(cluster: Cluster) -> None:
    cluster.api.refusals["GET", f"{JOBS}/train"] = (403, "no")
    result = cluster.why("team-a/train")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "rejected the request: no (403)" in result.stderr


def test_only_get_requests_are_sent_and_no_secret_is_read(cluster: Cluster) -> None:
    cluster.why("team-a/train")
    assert cluster.api.calls
    assert not any("secrets" in path for _, path in cluster.api.calls)
    assert {method for method, path in cluster.api.calls if "selfsubject" not in path} == {"GET"}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("team-a/trian", "there is no MPIJob team-a/trian; did you mean train?"),
        ("team-a/other", "there is no MPIJob team-a/other; the namespace has train"),
        ("team-aa/train", "there is no namespace team-aa; did you mean team-a?"),
        ("ops/train", "there is no MPIJob in namespace ops"),
    ],
)
def test_missing_job_gives_exit_code_2_and_a_suggestion(cluster: Cluster, name: str, error: str) -> None:
    cluster.set_list("/api/v1/namespaces", {"metadata": {"name": "team-a"}}, {"metadata": {"name": "ops"}})
    cluster.set_list(JOBS.replace("team-a", "team-aa"))
    cluster.set_list(JOBS.replace("team-a", "ops"))
    result = cluster.why(name)
    assert (result.exit_code, result.stderr) == (2, f"error: {error}\n")


def test_namespace_without_stuck_jobs_gives_exit_code_0(cluster: Cluster) -> None:
    result = cluster.why("-n", "team-a")
    assert (result.exit_code, result.stdout) == (0, "1 job, none to look at\n")


def test_job_names_are_completed_in_the_shell(cluster: Cluster) -> None:
    context = click.Context(main.commands["why"])
    context.params |= {"kubeconfig": cluster.config, "namespace": "team-a"}
    (argument,) = (parameter for parameter in context.command.params if parameter.name == "job")
    for typed, names in (("tr", ["train"]), ("team-a/", ["team-a/train"]), ("x", [])):
        assert [completion.value for completion in argument.shell_complete(context, typed)] == names
    context.params["kubeconfig"] = Path("/nowhere")
    assert argument.shell_complete(context, "tr") == []


def test_stuck_jobs_of_a_namespace_are_listed(cluster: Cluster) -> None:
    stuck = job({"metadata.name": "other", "metadata.uid": "x", "spec.runPolicy.suspend": True})
    cluster.set_list(JOBS, cluster.api.objects[f"{JOBS}/train"], stuck)
    result = cluster.why("-n", "team-a")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "team-a/other does not run: it is suspended by its user, and by no queue",
        "2 jobs: 1 to fix; `mpijob-webhook why NAME` says what to do.",
    ]
    reports = json.loads(cluster.why("-n", "team-a", "-o", "json").stdout)
    assert [report["name"] for report in reports] == ["other", "train"]


def test_jobs_of_a_namespace_are_read_concurrently(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure to read one job must not be reported for a different job."""
    barrier, original = asyncio.Barrier(2), SightReader.read

    async def read(reader: SightReader, stored: Any) -> Any:
        async with asyncio.timeout(20):
            await barrier.wait()
        return await original(reader, stored)

    monkeypatch.setattr(SightReader, "read", read)
    other = job({"metadata.name": "other", "metadata.uid": "x"}, true("Running"))
    cluster.set_list(JOBS, cluster.api.objects[f"{JOBS}/train"], other)
    cluster.api.refusals["GET", "/apis/batch/v1/namespaces/team-a/jobs/other-launcher"] = (403, "no")
    reports = json.loads(cluster.why("-n", "team-a", "-o", "json").stdout)
    assert {report["name"]: list(report["notRead"]) for report in reports} == {"train": [], "other": ["jobs"]}


def test_problem_found_by_the_operator_and_by_admission_is_reported_once(cluster: Cluster) -> None:
    unreadable = job({"status": REMOVE, "Worker.template.spec.hostNetwork": "yes"})
    cluster.api.objects[f"{JOBS}/train"] = unreadable
    del cluster.api.objects["/apis/batch/v1/namespaces/team-a/jobs/train-launcher"]
    cluster.set_list(f"{SPACE}/pods")
    report = json.loads(cluster.why("team-a/train", "-o", "json").stdout)
    assert [cause["id"] for cause in report["causes"]] == ["unreadable"]
