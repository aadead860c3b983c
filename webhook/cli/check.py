"""The command `check`: the verdict on jobs in files, or of a Pod Security level on pods in files."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from webhook.cli.options import CLUSTER_FILE, OUTPUT, POLICY, REFUSED, about_a_cluster, show, with_api
from webhook.cli.terminal import UNUSABLE, complain, fail, printable
from webhook.client.access import Access

if TYPE_CHECKING:
    from webhook.cli.files import Manifest


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@POLICY
@CLUSTER_FILE
@about_a_cluster("The cluster whose schema of MPIJobs counts. Default: a packaged one.")
@click.option("--level", metavar="LEVEL[@VERSION]", help="Check all pods by this Pod Security level, and no rules.")
@click.option("-n", "--namespace", default="default", help="For jobs that name no namespace.")
@OUTPUT
def check(
    *,
    files: tuple[str, ...],
    policy: Path | None,
    cluster: Path | None,
    access: Access,
    level: str | None,
    namespace: str,
    output: str,
) -> NoReturn:
    """Check the MPIJobs in files, without a cluster.

    Each job goes the way that it goes through the webhook: what is missing is injected, then every rule looks at it. A
    FILE may hold several documents and lists, be JSON, be a directory (its .yaml, .yml and .json files), or be - for
    standard input. Objects of other kinds are passed over.

    A job that the --cluster file holds already is checked as a change to it, as `kubectl apply` would make it.

    Fields that MPIJobs do not have are refused, as kubectl has the API server do it (other clients lose them with no
    more than a warning), and so are values of a wrong type. The schema is that of mpi-operator v0.8.0, with
    --kubeconfig that of the cluster.

    With --level, what is checked are the pods of all Kubernetes' workloads and of MPIJobs, as they are written.

    \b
    Examples:
      mpijob-webhook check job.yaml
      mpijob-webhook check manifests/ --level restricted@v1.30
      mpijob-webhook check manifests/ --policy policy.yaml
      kustomize build . | mpijob-webhook check - -o json
      kubectl get namespaces,mpijobs -A -o yaml > cluster.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml
      mpijob-webhook check job.yaml --kubeconfig ~/.kube/config
      kubectl apply --dry-run=server -f job.yaml

    \b
    Exit code:
      0  every job would be admitted
      1  at least one would be refused
      2  unusable input: a file, the policy or the cluster file is broken, or there is nothing to check
    """
    in_a_cluster = access != Access()
    if level and (policy or cluster or in_a_cluster):
        fail("--level looks at nothing but the pods, so it takes no --policy, --cluster or --kubeconfig")
    from webhook.cli import files as manifests

    checker = (
        _level_checker(level, namespace)
        if level is not None
        else _job_checker(policy, cluster, access if in_a_cluster else None, namespace)
    )
    found, errors = manifests.load(files)
    checked = [manifest for manifest in found if checker.concerns(manifest)]
    verdicts = [checker.check(manifest) for manifest in checked]
    if output == "text":
        for other in (manifest for manifest in found if not checker.concerns(manifest)):
            click.echo(printable(f"{other.source}: passed over {other.kind} {other.title}"), err=True)
    show(output, checker.report(verdicts), [verdict.as_json() for verdict in verdicts])
    if not checked and not errors:
        complain(f"no {checker.subject} in {', '.join(files)}")
    complain(*errors)
    refused = any(not verdict.allowed for verdict in verdicts)
    sys.exit(UNUSABLE if errors or not checked else REFUSED if refused else 0)


@dataclass(frozen=True, slots=True)
class Checker:
    """A way to check objects in files."""

    subject: str
    """What it checks, in a word."""
    concerns: "Callable[[Manifest], bool]"
    """Whether it checks an object, or passes over it."""
    check: "Callable[[Manifest], Any]"
    """The verdict on an object."""
    report: Callable[[Sequence[Any]], Iterator[str]]
    """All verdicts in lines."""


def _job_checker(policy: Path | None, cluster: Path | None, access: Access | None, namespace: str) -> Checker:
    from webhook.cli import crd_schema, job_check

    check = partial(
        job_check.check,
        policy=job_check.load_policy(policy),
        cluster=job_check.load_cluster(cluster),
        schema=with_api(access, crd_schema.of_cluster) if access else crd_schema.packaged(),
        namespace=namespace,
    )
    return Checker("MPIJob", job_check.is_job, check, job_check.report)


def _level_checker(text: str, namespace: str) -> Checker:
    from webhook.cli import level_check

    try:
        level = level_check.parse(text)
    except ValueError as error:
        fail(f"--level: {error}")
    check = partial(level_check.check, level=level, namespace=namespace)
    return Checker("pods", level_check.has_pods, check, level_check.report)
