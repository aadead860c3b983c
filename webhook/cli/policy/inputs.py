"""What the commands are given, read; a command that cannot do its work with it ends here."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from webhook.cli.policy import cluster as clusters
from webhook.cli.policy import documents, revision
from webhook.cli.policy.cluster import ClusterPolicies
from webhook.cli.policy.documents import Found
from webhook.cli.policy.revision import Revision, RevisionError
from webhook.cli.terminal import UNUSABLE, caution, complain, fail, printable
from webhook.client.access import Access
from webhook.client.calls import ClusterError
from webhook.policy.layers import Layer


def policies(arguments: Sequence[str], *, broken: bool = False) -> Found:
    """The policies in files; with `broken` it is the caller's matter what is wrong with them, or that there is none."""
    return _usable(documents.load(arguments), arguments, broken=broken)


def policies_at(arguments: Sequence[str], written: str) -> tuple[Found, Revision]:
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
    path: Path | None,
    access: Access,
    policy_namespace: str,
    *,
    namespace: str = "",
    jobs: bool = False,
) -> ClusterPolicies:
    """What the cluster in a file has, else the one behind a kubeconfig."""
    if path is not None and access != Access():
        fail("--cluster and --kubeconfig, --context or --as exclude each other")
    try:
        if path is not None:
            known = clusters.from_file(path, policy_namespace=policy_namespace, namespace=namespace)
        else:
            asked = clusters.from_api(
                access,
                policy_namespace=policy_namespace,
                namespace=namespace,
                jobs=jobs,
            )
            known = asyncio.run(asked)
    except ClusterError as error:
        fail(error)
    for problem in known.problems:
        click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return known


def after(given: Found, known: ClusterPolicies, without: Iterable[str]) -> list[Layer]:
    """The policies that would be in force."""
    try:
        return documents.applied(given, known.layers, without=without)
    except KeyError as error:
        there = ", ".join(layer.name for layer in known.layers) or "the built-in defaults"
        fail(f'there is no policy "{error.args[0]}" in force, only {there}')
