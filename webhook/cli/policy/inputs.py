"""Reads the inputs of the policy commands. Unusable input ends the command."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from webhook.cli import world_sources
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.cli.policy import documents
from webhook.cli.policy.documents import PolicyFiles
from webhook.cli.terminal import UNUSABLE, caution, complain, fail, printable
from webhook.client.access import Access
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.policy.layers import Layer


def policies(arguments: Sequence[str], *, broken: bool = False) -> PolicyFiles:
    """The policies in files. With `broken`, the command does not end for broken or missing policies."""
    contents = documents.load(arguments)
    for other in contents.others:
        click.echo(printable(other), err=True)
    complain(*contents.errors)
    missing = bool(arguments) and not contents.policies
    if missing and not contents.errors:
        complain(f"no policy in {', '.join(arguments)}")
    if broken:
        return contents
    faults = [f"{policy.title}: {fault}" for policy in contents.policies for fault in policy.faults]
    complain(*faults)
    if contents.errors or faults or missing:
        sys.exit(UNUSABLE)
    return contents


def cluster(
    path: Path | None, access: Access, policy_namespace: str, *, namespace: str = "", jobs: bool = False
) -> JobWorld:
    """The policies and namespaces of a cluster, from the file `path` or from the API server.

    With `jobs`, it also has all other objects on which verdicts about jobs depend.
    """
    world = world_sources.of_options(
        path,
        access,
        [namespace] if namespace else [],
        policy_namespace=policy_namespace,
        resources=() if jobs else (NAMESPACES,),
        needed=(POLICIES, (MPI_JOBS if jobs else NAMESPACES).name),
        with_schema=False,
    )
    for problem in (*world.problems, *world.unread):
        click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return world


def after(changes: PolicyFiles, world: JobWorld, without: Iterable[str]) -> list[Layer]:
    try:
        return documents.applied(changes, world.layers, without=without)
    except KeyError as error:
        names = ", ".join(layer.name for layer in world.layers) or "the built-in defaults"
        fail(f'there is no policy "{error.args[0]}" in force, only {names}')
