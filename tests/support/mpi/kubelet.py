"""A kubelet for the pods of a job: it runs real sshd on the workers, and real ssh and mpirun on the launcher.

Pods are Linux namespaces of this machine (`pods`). This module writes the status of the pods. The real Job controller
and the real operator decide about the job. As with DNS, the launcher can resolve the name of a worker only after the
worker is ready. A failed container is restarted after 10 s, 20 s and so on.
"""

import base64
import json
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.process import Program
from tests.support.installation.sshd import Sshd
from tests.support.mpi import pods
from tests.support.mpi.releases import Release

LABELS = "training.kubeflow.org/"
HELD = "held"
FIRST_BACKOFF = 10.0
LONGEST = 400.0
"""Seconds after which a job must have ended."""


@dataclass
class Life:
    name: str
    succeeded: bool = False
    tries: int = 0
    """The number of starts of the launcher's first container."""
    waited: list[str] = field(default_factory=list)
    """The output of the init containers."""
    output: str = ""
    """The output of the launcher's last try."""


@dataclass(frozen=True)
class Kubelet:
    """Runs jobs of a cluster. `folder` gets a subfolder for each job, with the files of its pods."""

    cluster: Cluster
    sshd: Sshd
    folder: Path

    def live(self, namespace: str, name: str, delays: list[float], release: Release, *, held: bool = False) -> Life:
        """Run the job until it has ended. The sshd of each worker starts to listen after its delay in seconds.

        With `held`, the launcher's Job is suspended until the workers are ready, as in mpi-operator pull request 868.
        The suspended Job is a copy, because today's operator would resume its own Job.
        """
        life, folder = Life(name), self.folder / f"{namespace}-{name}"

        def get(kind: str, of: str) -> Any:
            wait = partial(self.cluster.get, kind, of, "-n", namespace)
            return self.cluster.wait_for(f"{kind} {of}", wait, timeout=120)

        template = get("job", f"{name}-launcher")["spec"]["template"]
        copy = f"{name}-{HELD}"
        if held:
            self.cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=_suspended(copy, name, template))
        launcher = {"metadata": {"namespace": namespace}, "spec": template["spec"]}
        names = [f"{name}-worker-{number}" for number in range(len(delays))]
        workers = [get("pod", worker) for worker in names]
        files = get("configmap", f"{name}-config")["data"]
        contents = {
            f"{name}-ssh": get("secret", f"{name}-ssh")["data"],
            f"{name}-config": {key: base64.b64encode(text.encode()).decode() for key, text in files.items()},
        }
        manifests = [launcher, *workers]
        folder.mkdir()
        with (
            pods.running(manifests, contents, release.environment, folder, published=False) as (first, *others),
            ExitStack() as run,
        ):
            start = time.monotonic()

            def come_up(worker: str, other: pods.Pod, delay: float) -> None:
                time.sleep(max(0.0, start + delay - time.monotonic()))
                program = Program(worker, _serving(other, self.sshd), log=folder / f"{worker}.log", env={})
                run.callback(program.stop)
                for pod in (first, *others):
                    if pod is not other:
                        pod.learn(other)
                report(self.cluster, namespace, worker, "Running", ready=True)

            with ThreadPoolExecutor(len(delays)) as pool:
                up = [pool.submit(come_up, *worker) for worker in zip(names, others, delays, strict=True)]
                if held:
                    for worker_start in up:
                        worker_start.result()
                    resume = ("--type=merge", "-p", '{"spec": {"suspend": false}}')
                    self.cluster.kubectl("patch", "job", copy, "-n", namespace, *resume)
                _launcher(self.cluster, namespace, first, others, life, role=HELD if held else "launcher")
            for worker_start in up:
                worker_start.result()
            kind, of, good = ("job", copy, "Complete") if held else ("mpijob", name, "Succeeded")
            ends = lambda: [condition for condition in (good, "Failed") if has_condition(get(kind, of), condition)]  # noqa: E731
            life.succeeded = self.cluster.wait_for(f"{name} to end", ends, timeout=120) == [good]
        return life


def _suspended(name: str, job: str, template: Mapping[str, Any]) -> dict[str, Any]:
    labels = {f"{LABELS}job-name": job, f"{LABELS}job-role": HELD}
    pod = {"metadata": {**template["metadata"], "labels": labels}, "spec": template["spec"]}
    spec = {"suspend": True, "backoffLimit": 0, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _launcher(
    cluster: Cluster, namespace: str, pod: pods.Pod, workers: list[pods.Pod], life: Life, *, role: str
) -> None:
    """Run the init containers once, then the first container until it succeeds or the Job controller gives up."""
    selector = ("-n", namespace, "-l", f"{LABELS}job-name={life.name},{LABELS}job-role={role}")

    def bound() -> str | None:
        launchers = cluster.get("pods", *selector)["items"]
        names = [
            launcher["metadata"]["name"]
            for launcher in launchers
            if launcher["spec"].get("nodeName") and not _is_going(launcher)
        ]
        return names[0] if names else None

    mine: str = cluster.wait_for(f"the launcher of {life.name}", bound, timeout=120)
    limit = time.monotonic() + LONGEST
    for container in pod.manifest["spec"].get("initContainers", ()):
        done = subprocess.run(pod.init_command(container), capture_output=True, text=True, timeout=LONGEST, check=False)
        life.waited += [done.stdout + done.stderr]
        assert done.returncode == 0, life.waited
    for worker in workers:
        worker.learn(pod)
    backoff = FIRST_BACKOFF
    while time.monotonic() < limit:
        life.tries += 1
        report(cluster, namespace, mine, "Running", ready=True, restarts=life.tries - 1)
        done = subprocess.run(pod.command, capture_output=True, text=True, timeout=LONGEST, check=False)
        life.output = done.stdout + done.stderr
        if done.returncode == 0:
            report(cluster, namespace, mine, "Succeeded", ready=False, restarts=life.tries - 1)
            return
        if not report(cluster, namespace, mine, "Running", ready=False, restarts=life.tries):
            return
        until = time.monotonic() + backoff
        while time.monotonic() < until:
            if bound() is None:
                return
            time.sleep(1)
        backoff *= 2


def _is_going(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def report(cluster: Cluster, namespace: str, pod: str, phase: str, *, ready: bool, restarts: int = 0) -> bool:
    """Write the pod's status. Returns False if the pod was deleted."""
    state = {"running": {}} if ready else {"terminated": {"exitCode": 0 if phase == "Succeeded" else 1}}
    first = {"name": "mpi", "image": "x", "imageID": "x", "ready": ready, "restartCount": restarts, "state": state}
    done = cluster.kubectl("get", "pod", pod, "-n", namespace, "-o", "json", check=False)
    if done.returncode or _is_going(manifest := json.loads(done.stdout)):
        return False
    first["name"] = manifest["spec"]["containers"][0]["name"]
    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [first],
    }
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    return cluster.kubectl("patch", "pod", pod, "-n", namespace, *patch, check=False).returncode == 0


def _serving(pod: pods.Pod, sshd: Sshd) -> list[str | Path]:
    """The worker's command, with the sshd of this machine instead of the image's sshd."""
    command = [sshd.program if word == "/usr/sbin/sshd" else word for word in pod.command]
    if sshd.libraries:
        command.insert(command.index(sshd.program), f"LD_LIBRARY_PATH={sshd.libraries}")
    return command
