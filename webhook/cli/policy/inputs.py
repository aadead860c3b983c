"""Reads the arguments of the commands; unusable input ends the command here."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from webhook.cli import job_world, world_sources
from webhook.cli.files import ManifestError
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.cli.options import with_api
from webhook.cli.policy import documents, revision
from webhook.cli.policy.documents import Found
from webhook.cli.policy.revision import RevisionError
from webhook.cli.terminal import UNUSABLE, caution, complain, fail, printable
from webhook.client.access import Access
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.policy.layers import Layer


def policies(arguments: Sequence[str], *, broken: bool = False) -> Found:
    """The policies in files; with `broken` the caller handles broken documents, or no document."""
    return _usable(documents.load(arguments), arguments, broken=broken)


def policies_at(arguments: Sequence[str], written: str) -> tuple[Found, str]:
    """The policies in files as they were at a revision of their git repository."""
    try:
        found, at = revision.load(arguments, written)
    except RevisionError as error:
        fail(error)
    return _usable(found, arguments, broken=False), at


def _usable(found: Found, arguments: Sequence[str], *, broken: bool) -> Found:
    for other in found.others:
        click.echo(printable(other), err=True)
    complain(*found.errors)
    missing = bool(arguments) and not found.policies
    if missing and not found.errors:
        complain(f"no policy in {', '.join(arguments)}")
    if broken:
        return found
    faults = [f"{policy.title}: {fault}" for policy in found.policies for fault in policy.faults]
    complain(*faults)
    if found.errors or faults or missing:
        sys.exit(UNUSABLE)
    return found


def cluster(
    path: Path | None, access: Access, policy_namespace: str, *, namespace: str = "", jobs: bool = False
) -> JobWorld:
    """The cluster in a file, else the one behind a kubeconfig: its policies, and the other objects that are needed.

    Those are the namespace, or with `jobs` everything that jobs are judged by.
    """
    if path is not None and access != Access():
        fail("--cluster and --kubeconfig, --context or --as exclude each other")
    if path is not None:
        try:
            world = job_world.of_file(path, policy_namespace=policy_namespace)
        except ManifestError as error:
            fail(error)
    else:
        world = with_api(
            access,
            lambda api: world_sources.of_cluster(
                api,
                [namespace] if namespace else [],
                policy_namespace=policy_namespace,
                resources=() if jobs else (NAMESPACES,),
                needed=(POLICIES, (MPI_JOBS if jobs else NAMESPACES).name),
                with_schema=False,
            ),
        )
    for problem in (*world.problems, *world.unread):
        click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return world


def after(given: Found, known: JobWorld, without: Iterable[str]) -> list[Layer]:
    """The policies that would be in force."""
    try:
        return documents.applied(given, known.layers, without=without)
    except KeyError as error:
        there = ", ".join(layer.name for layer in known.layers) or "the built-in defaults"
        fail(f'there is no policy "{error.args[0]}" in force, only {there}')
