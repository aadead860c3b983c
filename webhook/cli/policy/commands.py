"""The commands `mpijob-webhook policy ...`: they parse, call, print. What a command needs is imported when it runs."""
# ruff: noqa: PLC0415 - as in webhook.cli.main

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from webhook.cli.terminal import UNUSABLE, fail

FILE: Final = click.Path(path_type=Path, dir_okay=False)
OUTPUT: Final = click.Choice(["text", "json"])
NAMESPACE: Final = "mpijob-webhook"

# Of a command that compares what a cluster has with what it would have.
CLUSTER_OPTIONS: Final = (
    click.option("--policy", "files", multiple=True, metavar="FILE", help="Policies to apply; may be repeated."),
    click.option("--without", multiple=True, metavar="NAME", help="A policy to delete; may be repeated."),
    click.option("--cluster", type=FILE, help="What the cluster holds, as `kubectl get ... -o yaml` prints it."),
    click.option("--kubeconfig", type=FILE, help="The cluster to ask. Default without --cluster: as kubectl."),
    click.option("--policy-namespace", default=NAMESPACE, help="Where the service's policy ConfigMaps are."),
)


def _against_cluster(command: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    for option in reversed(CLUSTER_OPTIONS):
        command = option(command)
    return command


@click.group()
def policy() -> None:
    """Write, check and compare policies, and see what is in force.

    A FILE holds policy documents (kind MPIJobPolicy) as they are, or ConfigMaps with one under data["policy.yaml"]. It
    may hold several, be a directory (its .yaml, .yml and .json files), or be - for standard input.

    \b
    Examples:
      mpijob-webhook policy init > policy.yaml
      mpijob-webhook policy validate policy.yaml
      mpijob-webhook policy replay --policy policy.yaml
      mpijob-webhook policy effective --namespace team-a

    \b
    Exit code:
      0  done, nothing to complain about
      1  a broken policy, a difference, or a job that would newly be denied: see each command
      2  unusable input: a file, the cluster or an option
    """


@policy.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=OUTPUT, default="text", help="For people or for programs.")
def validate(files: tuple[str, ...], output: str) -> NoReturn:
    """Check policies: field, accepted values and line of every fault.

    Good documents may still get warnings: for an exemption that has ended, a ConfigMap without the label by which the
    service finds it, values that documents of equal priority set differently, and documents that contradict each other
    so that one is left out.

    \b
    Examples:
      mpijob-webhook policy validate policy.yaml
      mpijob-webhook policy validate manifests/policies/
      kustomize build policies | mpijob-webhook policy validate -

    \b
    Exit code:
      0  every document is good, warnings or not
      1  at least one is broken
      2  unusable input: a file cannot be read, or there is no policy in it
    """
    from webhook.cli.policy import inputs
    from webhook.cli.policy.validate import validate as judge

    found = inputs.policies(files, broken=True)
    outcome = judge(found.policies, today=_today())
    _show(output, outcome.as_text(), outcome.as_json())
    sys.exit(UNUSABLE if found.errors or not found.policies else 0 if outcome.good else 1)


@policy.command()
@click.option("-n", "--namespace", required=True, help="The namespace in question.")
@_against_cluster
@click.option(
    "-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", help="yaml is one policy document."
)
def effective(
    *,
    namespace: str,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    kubeconfig: Path | None,
    policy_namespace: str,
    output: str,
) -> NoReturn:
    """Show what is in force in a namespace, value by value.

    Each value stands with the policy that it comes from, the built-in default included. The policies are those of the
    cluster. With --policy it is shown what would be in force: ConfigMaps take the place of those with the same name, as
    `kubectl apply` would do it; a bare document stands in place of all of them.

    With --policy alone no cluster is asked. Of a namespace of which nothing is known nobody can say which policies with
    a selector are for it: the rules that they are about then only warn, as in the service. A document that the service
    got with `serve --policy` is not seen here.

    \b
    Examples:
      mpijob-webhook policy effective --namespace team-a
      mpijob-webhook policy effective --namespace team-a --policy new.yaml --kubeconfig ~/.kube/config
      mpijob-webhook policy effective --namespace team-a --policy policies/ --cluster cluster.yaml -o json

    \b
    Exit code:
      0  shown
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import inputs
    from webhook.cli.policy.cluster import ClusterPolicies
    from webhook.cli.policy.effective import effective as report
    from webhook.policy.in_force import PolicySet

    given = inputs.policies(files)
    offline = files and cluster is None and kubeconfig is None
    known = ClusterPolicies() if offline else inputs.cluster(cluster, kubeconfig, policy_namespace, namespace=namespace)
    in_force = inputs.after(given, known, without)
    outcome = report(PolicySet(in_force), namespace, known.namespace, today=_today(), origin=known.origin)
    if output == "yaml":
        click.echo(outcome.as_yaml(), nl=False)
    else:
        _show(output, outcome.as_text(), outcome.as_json())
    sys.exit(0)


@policy.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("-o", "--output", type=OUTPUT, default="text", help="For people or for programs.")
def diff(old: str, new: str, output: str) -> NoReturn:
    """Show what changes from OLD to NEW, value by value.

    Both are files or directories. One document is compared with one; of several those that have the same name: that
    of the ConfigMap, else of the file.

    \b
    Examples:
      mpijob-webhook policy diff policy.yaml new.yaml
      kubectl get configmap base -n mpijob-webhook -o yaml | mpijob-webhook policy diff - base.yaml

    \b
    Exit code:
      0  nothing changes
      1  something changes
      2  unusable input: a file or a policy in it
    """
    from webhook.cli.policy import inputs
    from webhook.cli.policy.diff import differences

    today = _today()
    changes = differences(inputs.policies([old]).policies, inputs.policies([new]).policies)
    lines = [line for change in changes for line in change.as_text(today)] or ["nothing changes"]
    _show(output, lines, [change.as_json() for change in changes])
    sys.exit(1 if changes else 0)


@policy.command()
@_against_cluster
@click.option("-o", "--output", type=OUTPUT, default="text", help="For people or for programs.")
def replay(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    kubeconfig: Path | None,
    policy_namespace: str,
    output: str,
) -> NoReturn:
    """Judge the jobs that exist under other policies.

    Every MPIJob of the cluster is judged as if it were submitted now, under the policies in force and under those that
    would be: ConfigMaps take the place of those with the same name, as `kubectl apply` would do it; a bare document
    stands in place of all of them; those named with --without are gone. Nothing is changed, and jobs that exist go on
    whatever the policy says.

    \b
    Examples:
      mpijob-webhook policy replay --policy new.yaml
      mpijob-webhook policy replay --policy policies/ --kubeconfig ~/.kube/config -o json
      mpijob-webhook policy replay --without mpijob-policy-audit-only
      kubectl get namespaces,mpijobs,priorityclasses -A -o yaml > cluster.yaml
      mpijob-webhook policy replay --policy new.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  no job would newly be denied
      1  at least one would
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import inputs
    from webhook.cli.policy.replay import replay as judge

    if not files and not without:
        fail("nothing would change: name policies with --policy or --without")
    given = inputs.policies(files)
    known = inputs.cluster(cluster, kubeconfig, policy_namespace, jobs=True)
    outcome = judge(known, inputs.after(given, known, without), today=_today())
    _show(output, outcome.as_text(), outcome.as_json())
    sys.exit(0 if outcome.safe else 1)


@policy.command()
def schema() -> None:
    """Write the JSON Schema of policy documents, for editors.

    \b
    Examples:
      mpijob-webhook policy schema > mpijobpolicy.schema.json
    """
    from webhook.cli.policy.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))


@policy.command()
def init() -> None:
    """Write a policy document with every setting at its default.

    \b
    Examples:
      mpijob-webhook policy init > policy.yaml
    """
    from webhook.cli.policy.schema import starting_document

    click.echo(starting_document(), nl=False)


def _show(output: str, text: Iterable[str], value: Any) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=2))
    else:
        for line in text:
            click.echo(line)


def _today() -> date:
    """The date that the service goes by."""
    return datetime.now(UTC).date()
