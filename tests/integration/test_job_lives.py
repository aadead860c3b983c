"""Two replicas write deadline Events and metrics of jobs. One replica is killed.

The replicas have only the permissions of the default overlay and of the component `deadline-events`.

MPIJOB_LIVES sets the number of jobs of each of the seven kinds. `make lives` sets it to 72.
"""

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support import jobs
from tests.support.installation import default_overlay, service
from tests.support.installation.installed import OURS
from tests.support.installation.service import Replica
from tests.support.paths import MANIFESTS
from tests.support.rare import rare
from webhook.api.yaml import load_all

pytestmark = pytest.mark.timeout(1200)

RIGHTS = MANIFESTS / "components" / "deadline-events" / "rbac.yaml"
FLAGS = ("--deadline-events", "--job-metrics")
EACH = int(os.environ.get("MPIJOB_LIVES", "2"))
LIMIT = 60 + 3 * max(
    EACH - 6, 0
)  # seconds: all jobs of a kind must be created and suspended before the first one reaches its limit
# The kinds of jobs, and the expected Events of each.
NEAR, OVER = "TimeLimitNear", "TimeLimitReached"
EXPECTED = {
    "done": [],
    "limited": [NEAR, OVER],
    "asks": [NEAR, OVER],
    "waits": [],
    "long": [],
    "resumed": [NEAR, OVER],
    "changed": [NEAR, OVER],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster in which jobs run, with the default overlay and without components."""
    with Cluster(log_dir=tmp_path_factory.mktemp("lives-logs")) as running:
        running.start_scheduler()
        running.start_kwok(gpu_nodes(2 + EACH))
        running.start_operator()
        default_overlay.apply(running)
        yield running


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Path:
    return default_overlay.account(cluster)


@pytest.fixture(scope="module")
def rights(cluster: Cluster) -> None:
    """Grants the permissions of the component `deadline-events`."""
    cluster.apply(load_all(RIGHTS.read_text()))


def job(
    namespace: str, name: str, *, keep: bool = True, annotations: dict[str, str] | None = None, **policy: Any
) -> Any:
    found = jobs.changed({"metadata": {"name": name, "namespace": namespace}, "Worker.replicas": 1})
    template = found["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    template["metadata"] = {"annotations": {KEEP_RUNNING: "yes"} if keep else {}}
    for role in found["spec"]["mpiReplicaSpecs"].values():
        for container in role["template"]["spec"]["containers"]:
            container["resources"] = {"limits": {"cpu": "100m", "nvidia.com/gpu": 1}}
    keys = {f"training.openshift.io/{key}": value for key, value in (annotations or {}).items()}
    found["metadata"]["annotations"] = keys
    found["spec"]["runPolicy"] = {"cleanPodPolicy": "All", **policy}
    return found


def notify_only(namespace: str, name: str, timeout: str) -> Any:
    return job(namespace, name, annotations={"timeout": timeout, "timeout-action": "notify-only"})


def create(cluster: Cluster, *found: Any) -> None:
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(found)}, timeout=300)


def event_counts(cluster: Cluster, namespace: str) -> Counter[tuple[str, str]]:
    """The numbers of the service's Events, by job and reason."""
    found = cluster.get("events.events.k8s.io", "-n", namespace)["items"]
    ours = [each for each in found if each.get("reportingController") == OURS]
    return Counter((each["regarding"]["name"], each["reason"]) for each in ours)


def samples(replica: Replica, path: str = "/metrics/jobs") -> dict[str, float]:
    lines = replica.ops(path).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def test_deadline_during_downtime_is_reported(cluster: Cluster, account: Path, rights: None) -> None:
    namespace = cluster.create_namespace()
    create(cluster, notify_only(namespace, "ends", "1s"))
    cluster.wait_for("the launcher", lambda: _started(cluster, namespace, "ends"), timeout=60)
    with service.running(cluster, *FLAGS, "--kubeconfig", str(account), name="later", register=False):
        cluster.wait_for("the Event", lambda: event_counts(cluster, namespace) or None, timeout=60)
    with service.running(cluster, *FLAGS, "--kubeconfig", str(account), name="latest", register=False) as replica:
        known = 'mpijob_webhook_deadline_events_total{outcome="known"}'
        cluster.wait_for(
            "the replica to find the existing Event", lambda: samples(replica, "/metrics").get(known), timeout=60
        )
        assert event_counts(cluster, namespace) == {("ends", OVER): 1}
    shown = cluster.kubectl("describe", "mpijob", "ends", "-n", namespace).stdout
    assert re.search(
        r"Warning +TimeLimitReached +\S+ +mpijob-webhook +The 1s in the annotation training\.openshift\.io/timeout",
        shown,
    )
    assert OVER in cluster.kubectl("events", "--for", "mpijob/ends", "-n", namespace).stdout


@rare
def test_events_are_written_once_and_metrics_match_the_api_server(
    cluster: Cluster, account: Path, rights: None
) -> None:
    namespace = cluster.create_namespace()
    flags = (*FLAGS, "--kubeconfig", str(account))
    with ExitStack() as stack:
        killed, stays = (
            stack.enter_context(service.running(cluster, *flags, name=name, register=False))
            for name in ("killed", "stays")
        )
        for replica in (
            killed,
            stays,
        ):  # otherwise a replica treats the new jobs as old jobs, which the metrics do not count
            cluster.wait_for("the first list", partial(_has_list, replica))
        create(cluster, *(each for number in range(EACH) for each in _of_each_kind(namespace, number)))
        cluster.wait_for("a run", lambda: _started(cluster, namespace, "resumed-0"), timeout=LIMIT)
        for number in range(EACH):
            suspend(cluster, namespace, f"resumed-{number}", True)
        for number in range(EACH):
            name = f"resumed-{number}"
            cluster.wait_for("the suspension", partial(_is_suspended, cluster, namespace, name), timeout=LIMIT)
            suspend(cluster, namespace, name, False)
        for number in range(EACH):
            # The limit of the launcher's Job applies: the operator copies the MPIJob's limit only once.
            cluster.wait_for("a launcher", partial(_started, cluster, namespace, f"changed-{number}"), timeout=LIMIT)
            patch(cluster, namespace, "job", f"changed-{number}-launcher", activeDeadlineSeconds=LIMIT)
            patch(cluster, namespace, "mpijob", f"long-{number}", runPolicy={"activeDeadlineSeconds": 1})
        cluster.wait_for("the first Events", lambda: event_counts(cluster, namespace) or None, timeout=2 * LIMIT)
        os.killpg(cluster.programs["killed"].pid, signal.SIGKILL)
        stack.enter_context(service.running(cluster, *flags, name="new", register=False))

        expected_events = Counter(
            {(f"{kind}-{n}", why): 1 for kind, all_ in EXPECTED.items() for why in all_ for n in range(EACH)}
        )
        cluster.wait_for(
            "all Events", lambda: event_counts(cluster, namespace).total() >= expected_events.total(), timeout=8 * LIMIT
        )
        assert event_counts(cluster, namespace) == expected_events

        with suppress(TimeoutError):
            cluster.wait_for("the metrics", lambda: counted(cluster, namespace).items() <= samples(stays).items())
        expected, found = counted(cluster, namespace), samples(stays)
        assert {name: found.get(name) for name in expected} == expected
        where = f'{{namespace="{namespace}"}}'
        assert 0 < found[f"training_operator_mpijob_deadline_remaining_seconds{where}"] < 3600

        cluster.kubectl("delete", "mpijobs", "--all", "-n", namespace, "--wait=false", timeout=300)
        gone = {
            f"training_operator_mpijob_{name}{where}" for name in ("running", "queued", "deadline_remaining_seconds")
        }
        cluster.wait_for(
            "the gauges of the jobs to be removed", lambda: not gone & samples(stays).keys(), timeout=LIMIT
        )
        counters = {name: count for name, count in expected.items() if "_total" in name or "_count" in name}
        assert counters.items() <= samples(stays).items()
        assert samples(stays, "/metrics")['mpijob_webhook_companion_failing{companion="deadline-events"}'] == 0


def _of_each_kind(namespace: str, number: int) -> list[Any]:
    return [
        job(namespace, f"done-{number}", keep=False, activeDeadlineSeconds=3600),
        job(namespace, f"limited-{number}", activeDeadlineSeconds=LIMIT),
        notify_only(namespace, f"asks-{number}", f"{LIMIT}s"),
        job(namespace, f"waits-{number}", suspend=True, activeDeadlineSeconds=LIMIT),
        job(namespace, f"long-{number}", activeDeadlineSeconds=3600),
        job(namespace, f"resumed-{number}", activeDeadlineSeconds=LIMIT),
        job(namespace, f"changed-{number}", activeDeadlineSeconds=3600),
    ]


def _has_list(replica: Replica) -> bool:
    return samples(replica, "/metrics").get('mpijob_webhook_cache_synced{kind="job-lives"}') == 1


def _is_suspended(cluster: Cluster, namespace: str, name: str) -> bool:
    return has_condition(cluster.get("job", f"{name}-launcher", "-n", namespace), "Suspended")


def suspend(cluster: Cluster, namespace: str, name: str, value: bool) -> None:
    patch(cluster, namespace, "mpijob", name, runPolicy={"suspend": value})


def patch(cluster: Cluster, namespace: str, kind: str, name: str, **spec: Any) -> None:
    cluster.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def _started(cluster: Cluster, namespace: str, name: str) -> str:
    found = cluster.kubectl("get", "job", f"{name}-launcher", "-n", namespace, "-o", "json", check=False).stdout
    started: str = json.loads(found).get("status", {}).get("startTime", "") if found else ""
    return started


def counted(cluster: Cluster, namespace: str) -> dict[str, float]:
    """The expected metrics, counted from all jobs."""
    found = cluster.get("mpijobs", "-n", namespace)["items"]
    name, where = "training_operator_mpijob_", f'namespace="{namespace}"'
    done = [each for each in found if has_condition(each, "Succeeded")]
    failed = [each for each in found if has_condition(each, "Failed")]
    running = [each for each in found if has_condition(each, "Running")]
    queued = len(found) - len(done) - len(failed) - len(running)
    ran = len([each for each in found if not each["metadata"]["name"].startswith("waits")])
    gpus = f'{{{where},resource="nvidia.com/gpu"}}'
    return {
        f"{name}created_total{{{where}}}": len(found),
        f"{name}succeeded_total{{{where}}}": len(done),
        f'{name}failed_total{{{where},reason="DeadlineExceeded"}}': len(failed),
        f"{name}running{{{where}}}": len(running),
        f"{name}queued{{{where}}}": queued,
        f"{name}gpus_requested{gpus}": 2 * (len(running) + queued),
        f"{name}gpus_in_use{gpus}": 2 * len(running),
        # The hook that records the creator of a job is not registered here.
        f'{name}user_gpus_in_use{{{where},resource="nvidia.com/gpu",user="_unknown"}}': 2 * len(running),
        f"{name}duration_seconds_count{{{where}}}": len(done) + len(failed),
        f"{name}queue_seconds_count{{{where}}}": ran - len(_never_seen_running(done)),
    }


def _never_seen_running(done: list[Any]) -> list[Any]:
    """Jobs without the condition Running: the operator may miss a launcher that ends at once."""
    return [each for each in done if not any(c["type"] == "Running" for c in each["status"]["conditions"])]
