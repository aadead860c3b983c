"""Starts a cluster with the webhook, for use with kubectl: `python -m tests.controlplane.playground [--once]`."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import click

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.controlplane.process import ControlPlaneError, ends_in_words
from tests.support.installation import service

EXAMPLES = Path(os.path.relpath(Path(__file__).parents[2] / "manifests" / "examples"))
GOOD = EXAMPLES / "openmpi-pi.yaml"
BAD = EXAMPLES / "bad-several.yaml"
GPUS = EXAMPLES / "horovod-gpu.yaml"
NODES, GPUS_EACH, RACKS = 8, 8, 2

TO_TRY = [
    (f"apply -f {GOOD}", "admitted with injections, and run until it succeeds"),
    ("wait --for=condition=Succeeded mpijob/openmpi-pi", ""),
    ("get mpijob openmpi-pi -o yaml", "with the injected values"),
    (f"apply -f {BAD}", "rejected, with all problems"),
    (f"apply --dry-run=server -o yaml -f {GPUS}", "the job that would be stored"),
    ("create quota gpus --hard=requests.nvidia.com/gpu=64", "a quota, which applies to whole jobs"),
    (f"apply -f {GPUS}", "within the quota"),
    ("get quota gpus", ""),
    ("get nodes -L topology.kubernetes.io/rack -L nvidia.com/gpu.product", ""),
]
GUIDE = """
{ready} Kubernetes {version}, mpi-operator, {nodes},
and the webhook with its default policy. No container runs: KWOK simulates the nodes.

In another terminal, in this folder:

  export KUBECONFIG={kubeconfig}
  export PATH={tools}:$PATH

{commands}
  mpijob-webhook check {bad}

Logs, also of the webhook: {logs}
Ctrl-C stops and deletes everything.
"""


def run(*, once: bool) -> None:
    """Start everything, and run until Ctrl-C or SIGTERM. With `once`, try the examples and return."""
    start = time.monotonic()
    click.secho("Starting a Kubernetes cluster on this machine", bold=True)
    with Cluster(announce=lambda line: click.echo(f"  {line}")) as cluster:
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(NODES, gpus=GPUS_EACH, racks=RACKS))
        cluster.start_operator()
        with service.running(cluster):
            click.echo(guide(cluster, time.monotonic() - start))
            if once:
                try_examples(cluster)
            else:
                stay(cluster)


def guide(cluster: Cluster, seconds: float) -> str:
    version = cluster.kubectl("version").stdout.splitlines()[-1].removeprefix("Server Version: ")
    return GUIDE.format(
        ready=click.style(f"Ready after {seconds:.0f} s.", fg="green", bold=True),
        version=version,
        nodes=f"{NODES} simulated nodes with {GPUS_EACH} GPUs each in {RACKS} racks",
        kubeconfig=cluster.kubeconfig,
        tools=f"{cluster.assets.kubectl.parent}:{Path(sys.executable).parent}",
        commands="\n".join(
            f"  kubectl {line:<76}{f'# {effect}' if effect else ''}".rstrip() for line, effect in TO_TRY
        ),
        bad=BAD,
        logs=cluster.log_dir,
    )


def stay(cluster: Cluster) -> None:
    """Wait for Ctrl-C or SIGTERM. Raises ControlPlaneError if a part of the cluster exits."""
    try:
        while all(program.running for program in cluster.programs.values()):
            time.sleep(0.5)
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        click.echo("\nStopping.")
        return
    raise ControlPlaneError("\n".join(program.tail() for program in cluster.programs.values() if not program.running))


def try_examples(cluster: Cluster) -> None:
    """Show that the good example succeeds and the bad example is rejected; ControlPlaneError for other outcomes."""
    shown(cluster, "apply", "-f", str(GOOD))
    shown(cluster, "wait", "--for=condition=Succeeded", "mpijob/openmpi-pi", "--timeout=60s")
    shown(cluster, "apply", "--dry-run=server", "-f", str(GPUS))
    shown(cluster, "create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=64")
    shown(cluster, "apply", "-f", str(GPUS))
    if not shown(cluster, "apply", "-f", str(BAD), refused=True):
        raise ControlPlaneError(f"{BAD} was admitted")


def shown(cluster: Cluster, *args: str, refused: bool = False) -> bool:
    """Run and print a kubectl command. Raises ControlPlaneError if it fails, unless `refused` is expected."""
    click.secho(f"$ kubectl {' '.join(args)}", bold=True)
    done = cluster.kubectl(*args, check=not refused)
    click.echo(done.stdout + done.stderr)
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.playground", description=__doc__)
    parser.add_argument("--once", action="store_true", help="try the examples, then stop")
    once = parser.parse_args().once
    with ends_in_words():
        run(once=once)


if __name__ == "__main__":
    main()
