"""The command `init`."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook.cli.options import CLUSTER_FILE, FILE, POLICY_NAMESPACE, REFUSED, about_a_cluster, object_name, utf8_text
from webhook.cli.terminal import fail
from webhook.client.access import Access

if TYPE_CHECKING:
    from webhook.cli.job_world import JobWorld

FRAMEWORKS: Final = ("openmpi", "intel", "mpich", "horovod", "pytorch", "deepspeed")


class _Framework(click.Choice[str]):
    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        from webhook.api.names import choose

        return f'"{value}" is not supported. {choose(value, FRAMEWORKS)}'


@click.command()
@click.argument("program", nargs=-1, type=utf8_text, metavar="[-- PROGRAM...]")
@click.option("--framework", type=_Framework(FRAMEWORKS), required=True, help="The framework of the program.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Workers. Default: 2.")
@click.option(
    "--gpus", type=click.IntRange(min=0), metavar="N", help="GPUs per worker. Default: 1, or 0 for plain MPI."
)
@click.option(
    "--image", type=utf8_text, metavar="IMAGE", help="The image. Default: a published image, if the framework has one."
)
@click.option("--rdma/--no-rdma", help="Use RDMA, as set up by the platform. Default: no.")
@click.option("--mpiuser", is_flag=True, help="Run as the image's user mpiuser (1000). Default on OpenShift.")
@click.option("--queue", type=object_name, metavar="NAME", help="The LocalQueue of Kueue. Default: none.")
@click.option("--name", type=utf8_text, metavar="NAME", help="The job's name. Default: first-FRAMEWORK.")
@click.option(
    "-n",
    "--namespace",
    type=object_name,
    metavar="NAME",
    help="The namespace. Default: the context's, which is not written into the job.",
)
@click.option("--policy", type=FILE, help="Policies to check the job against; they replace all others.")
@CLUSTER_FILE
@about_a_cluster("The cluster to check the job against, as far as you may read it. Default: none.")
@POLICY_NAMESPACE
def init(
    *,
    program: tuple[str, ...],
    policy: Path | None,
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    **options: Any,
) -> NoReturn:
    """Write a first job, with comments.

    The job runs PROGRAM, or an example in the image. With a cluster, the job requests the type of GPU that most of the
    cluster's nodes have. On OpenShift, --mpiuser is the default.

    The job is then checked as with `mpijob-webhook check`. The verdict is written to standard error.

    \b
    Examples:
      mpijob-webhook init --framework openmpi > job.yaml
      mpijob-webhook init --framework horovod --workers 4 --gpus 2 > job.yaml
      mpijob-webhook init --framework pytorch --image registry.example.com/ml/train:1.4 -- train.py --epochs 3
      mpijob-webhook init --framework openmpi --kubeconfig ~/.kube/config | kubectl create -f -

    \b
    Exit code:
      0  the job was written and would be admitted
      1  the job was written and would be rejected
      2  unusable input: an option, or the cluster
    """
    from webhook.api import yaml
    from webhook.cli import first_job, job_check
    from webhook.cli.check import world_of
    from webhook.cli.files import Manifest

    world = world_of(policy, cluster, access, [options["namespace"]], policy_namespace)
    options["mpiuser"] |= _is_openshift(world, options["namespace"])
    try:
        wishes = first_job.wish(options, program, _gpus_of(world))
    except ValueError as error:
        fail(error)
    text = first_job.text(wishes)
    (document,) = yaml.load_all(text)
    verdict = job_check.check(Manifest(wishes.name, document), world, namespace=world.namespace)
    click.echo(text, nl=False)
    for line in verdict.as_text(short=True):
        click.echo(line, err=True)
    sys.exit(0 if verdict.allowed else REFUSED)


def _gpus_of(world: "JobWorld") -> str:
    from webhook.api.accelerators import DEFAULT_ACCELERATORS
    from webhook.cli.first_job import GPU
    from webhook.cluster.resources.nodes import NODES
    from webhook.cluster.view import UNKNOWN

    nodes = world.cluster.all(NODES)
    if nodes is UNKNOWN:
        return GPU
    counts = Counter(
        name for node in nodes.values() for name in DEFAULT_ACCELERATORS if node.shape.allocatable.get(name)
    )
    return counts.most_common(1)[0][0] if counts else GPU


def _is_openshift(world: "JobWorld", namespace: str | None) -> bool:
    from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
    from webhook.cluster.resources.sccs import SECURITY_CONTEXT_CONSTRAINTS
    from webhook.cluster.view import UNKNOWN

    stored = world.cluster.get(NAMESPACES, namespace or world.namespace)
    constraints = world.cluster.all(SECURITY_CONTEXT_CONSTRAINTS)
    reserved = isinstance(stored, Namespace) and stored.of_openshift
    return reserved or (constraints is not UNKNOWN and bool(constraints))
