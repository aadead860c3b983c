"""A cluster with jobs that do not run. The jobs are created together."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import gpu_nodes
from tests.support.namespaces import namespace
from tests.support.queued_jobs import MANAGED
from tests.support.stuck import kubelet as kubelets
from tests.support.stuck.cases import ABSENT, CASES, HOLDS_THE_QUEUE, NAMESPACES, TEAM, Case, others, queues
from tests.support.stuck.kubelet import Kubelet
from webhook.cli.main import main
from webhook.parts.why.causes.operator import PATIENCE

Json = dict[str, Any]
OPERATOR = "mpi-operator"


@dataclass(frozen=True)
class World:
    cluster: Cluster
    kubelet: Kubelet

    def why(self, *arguments: str, kubeconfig: Path | None = None) -> Result:
        command = ["why", *arguments, "--kubeconfig", str(kubeconfig or self.cluster.kubeconfig)]
        result = CliRunner().invoke(main, command)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def first_line(self, case: Case) -> str:
        """Wait until the first line of `why` matches the pattern. Returns the line, even if it never matched."""
        line = ""

        def right() -> bool | None:
            nonlocal line
            line = self.why(f"{case.namespace}/{case.name}").stdout.partition("\n")[0]
            return re.search(case.says, line) is not None or None

        try:
            # The cluster needs some time, and `why` reports a missing operator only after a while.
            self.cluster.wait_for(case.name, right, timeout=30 + PATIENCE.total_seconds())
        except TimeoutError:
            return line
        return line

    def first_lines(self) -> dict[Case, str]:
        """The first line of `why` for each case. The operator is stopped for the last case."""
        lines = {case: self.first_line(case) for case in CASES}
        self.cluster.programs.pop(OPERATOR).stop()
        self.make(ABSENT)
        return lines | {ABSENT: self.first_line(ABSENT)}

    def make(self, *cases: Case) -> None:
        jobs = [case.job() for case in cases]
        self.cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": jobs})

    def fail(self, case: Case) -> None:
        """Make the containers fail as the case requires."""
        assert case.fails is not None
        fails = case.fails
        pods = self.cluster.wait_for(f"pods of {case.name}", lambda: self._bound(case, fails.role))
        for pod in pods:
            (container,) = pod["spec"]["initContainers" if fails.init else "containers"]
            kind = "initContainerStatuses" if fails.init else "containerStatuses"
            status = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
            kubelets.set_status(
                self.cluster,
                pod,
                phase=fails.phase,
                **{kind: [{"ready": False, **status, **fails.status}]},
                conditions=[*pod["status"].get("conditions", ()), {"type": "Ready", "status": "False"}],
            )
            if fails.log:
                self.kubelet.logs[case.namespace, pod["metadata"]["name"]] = fails.log
        events = [kubelets.event(pod, *each) for pod in pods for each in fails.events]
        if events:
            self.cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": events})

    def _bound(self, case: Case, role: str) -> Sequence[Json] | None:
        """All pods of the role, once they are bound to nodes."""
        selector = f"training.kubeflow.org/job-name={case.name},training.kubeflow.org/job-role={role.lower()}"
        pods = self.cluster.get("pods", "-n", case.namespace, "-l", selector)["items"]
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        return bound if len(bound) == case.job()["spec"]["mpiReplicaSpecs"][role].get("replicas", 1) else None


@contextmanager
def stuck(cluster: Cluster) -> Iterator[World]:
    """A running cluster with the jobs of all cases."""
    with kubelets.kubelet(cluster.dir) as kubelet:
        cluster.start_scheduler()
        cluster.start_kwok(kubelet.of_nodes(nodes()))
        cluster.start_operator()
        cluster.start_kueue(settings={"managedJobsNamespaceSelector": {"matchLabels": MANAGED}})
        world = World(cluster, kubelet)
        for name, labels in NAMESPACES.items():
            cluster.kubectl("create", "-f", "-", stdin=namespace(name, **labels))
        cluster.apply([*queues(), *others()])
        _allow_checks(cluster)
        for queue in ("small", "checked", "racks"):
            _wait(cluster, "localqueue", queue, "Active")
        world.make(HOLDS_THE_QUEUE)
        _wait(cluster, "mpijob", HOLDS_THE_QUEUE.name, "Running")
        world.make(*CASES)
        for case in CASES:
            if case.fails is not None:
                world.fail(case)
        yield world


def nodes() -> list[Json]:
    """Four nodes with GPUs (three also have `npu`, the fourth has `fpga`), and a tainted node with `tpu`."""
    (tainted,) = gpu_nodes(1, gpus=0, prefix="tpu", devices={"example.com/tpu": "4"})
    taints = [{"key": "tpu", "value": "only", "effect": "NoSchedule"}]
    with_fpgas = gpu_nodes(1, prefix="fpga", devices={"example.com/fpga": "2"})
    return [*gpu_nodes(3, devices={"example.com/npu": "1"}), *with_fpgas, {**tainted, "spec": {"taints": taints}}]


def _wait(cluster: Cluster, kind: str, name: str, condition: str) -> None:
    there = lambda: has_condition(cluster.get(kind, name, "-n", TEAM), condition) or None  # noqa: E731
    cluster.wait_for(f"{kind} {name} to be {condition}", there)


def _allow_checks(cluster: Cluster) -> None:
    """Report the admission check as active, as its controller would. Without this status, the queue is inactive."""
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    conditions = [{**active, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    patch = ("patch", "admissioncheck", "budget", "--subresource=status", "--type=merge", "-p")
    cluster.kubectl(*patch, json.dumps({"status": {"conditions": conditions}}))
