"""The command `mpijob-webhook`: parses, calls, prints. What a command needs is imported when it runs."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import io
import json
import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from webhook import __version__
from webhook.cli.doctor import certs, doctor
from webhook.cli.policy import commands as policy_commands
from webhook.cli.serve import serve
from webhook.cli.terminal import UNUSABLE, complain, fail, faint, printable

PROGRAM: Final = "mpijob-webhook"
REFUSED: Final = 1

FILE: Final = click.Path(path_type=Path, dir_okay=False)
OUTPUT: Final = click.Choice(["text", "json"])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True})
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Admission webhook for Kubeflow MPIJobs (kubeflow.org/v2beta1).

    A job gets, at the moment it is submitted, the verdict that the cluster would otherwise give minutes later; and what
    it needs to run well is put in. The same verdict can be had without a cluster.

    \b
    To start with:
      mpijob-webhook demo                  what it does, shown on examples
      mpijob-webhook check job.yaml        what would become of my job?
      mpijob-webhook explain worker-count  what is this rule about?

    Colours appear on a terminal only, and not where NO_COLOR is set.
    """
    # https://no-color.org
    ctx.color = False if os.environ.get("NO_COLOR") else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--policy", type=FILE, help="Policy document (kind MPIJobPolicy). Default: the built-in policy.")
@click.option("--cluster", type=FILE, help="What the cluster holds, as `kubectl get ... -o yaml` prints it.")
@click.option("--level", metavar="LEVEL[@VERSION]", help="Check all pods by this Pod Security level, and no rules.")
@click.option("-n", "--namespace", default="default", help="For jobs that name no namespace.")
@click.option("-o", "--output", type=OUTPUT, default="text", help="For people or for programs.")
def check(
    *, files: tuple[str, ...], policy: Path | None, cluster: Path | None, level: str | None, namespace: str, output: str
) -> NoReturn:
    """Check the MPIJobs in files, without a cluster.

    Each job goes the way that it goes through the webhook: what is missing is put in, then every rule looks at it. A
    FILE may hold several documents and lists, be JSON, be a directory (its .yaml, .yml and .json files), or be - for
    standard input. Objects of other kinds are passed over.

    A job that the --cluster file holds already is checked as a change to it, as `kubectl apply` would make it. The
    MPIJob schema is not at hand here: a dry run on the server finds misspelt fields too.

    With --level, what is checked are the pods of all Kubernetes' workloads and of MPIJobs, as they are written.

    \b
    Examples:
      mpijob-webhook check job.yaml
      mpijob-webhook check manifests/ --level restricted@v1.30
      mpijob-webhook check manifests/ --policy policy.yaml
      kustomize build . | mpijob-webhook check - -o json
      kubectl get namespaces,mpijobs -A -o yaml > cluster.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml
      kubectl apply --dry-run=server -f job.yaml

    \b
    Exit code:
      0  every job would be admitted
      1  at least one would be refused
      2  unusable input: a file, the policy or the cluster file is broken, or there is nothing to check
    """
    from webhook.cli import check as checking
    from webhook.cli import check as inputs
    from webhook.cli import files as manifests
    from webhook.cli import level_check

    if level and (policy or cluster):
        fail("--level looks at nothing but the pods, so it takes neither --policy nor --cluster")
    asked, rules, known = inputs.level(level), inputs.policy(policy), inputs.cluster(cluster)
    found, errors = manifests.load(files)
    judges = level_check.has_pods if asked else checking.is_job
    judged = [manifest for manifest in found if judges(manifest)]
    verdicts: list[Any] = [
        level_check.check(manifest, asked, namespace=namespace)
        if asked
        else checking.check(manifest, policy=rules, cluster=known, namespace=namespace)
        for manifest in judged
    ]
    if output == "json":
        click.echo(json.dumps([verdict.as_json() for verdict in verdicts], indent=2))
    else:
        for other in (manifest for manifest in found if not judges(manifest)):
            click.echo(printable(f"{other.source}: passed over {other.kind} {other.title}"), err=True)
        for line in (level_check if asked else checking).report(verdicts):
            click.echo(line)
    if not judged and not errors:
        complain(f"no {'pods' if asked else 'MPIJob'} in {', '.join(files)}")
    complain(*errors)
    refused = any(not verdict.allowed for verdict in verdicts)
    sys.exit(UNUSABLE if errors or not judged else REFUSED if refused else 0)


@main.command()
@click.argument("name", metavar="RULE|INJECTION")
def explain(name: str) -> NoReturn:
    """Explain a rule or an injection, and its settings.

    Every refusal and warning ends with the name of its rule in brackets. `mpijob-webhook rules` lists the names.

    \b
    Examples:
      mpijob-webhook explain worker-count
      mpijob-webhook explain istio

    \b
    Exit code:
      0  explained
      2  there is no such rule or injection
    """
    from webhook.cli import explain as explaining

    entries = explaining.find(name)
    if not entries:
        meant = explaining.similar(name)
        hint = f"did you mean {' or '.join(meant)}?" if meant else f"`{PROGRAM} rules` lists them"
        fail(f'there is no rule or injection "{name}", {hint}')
    click.echo("\n\n".join("\n".join(entry.as_text()) for entry in entries))
    sys.exit(0)


@main.command()
@click.option("-o", "--output", type=OUTPUT, default="text", help="For people or for programs.")
def rules(output: str) -> None:
    """List every rule and injection with its default.

    \b
    Examples:
      mpijob-webhook rules
      mpijob-webhook rules -o json
    """
    from webhook.cli import explain as explaining

    entries = explaining.entries()
    if output == "json":
        click.echo(json.dumps(explaining.as_json(entries), indent=2))
        return
    for line in explaining.overview(entries):
        click.echo(line)
    click.echo(faint(f"`{PROGRAM} explain NAME` says more."))


@main.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
def demo(files: tuple[str, ...]) -> NoReturn:
    """Show on examples what the webhook does.

    The real service starts on 127.0.0.1 with a certificate of its own, and gets each job as the API server would send
    it: mutate, apply the patch, validate. You see what kubectl would show, and what was put in. No cluster is needed.

    Without FILE the examples of this project are shown: Open MPI, Intel MPI, MPICH and Horovod, and some bad ones.

    \b
    Examples:
      mpijob-webhook demo
      mpijob-webhook demo job.yaml

    \b
    Exit code:
      0  shown, and every example did what its first line says
      1  an example did something else
      2  a file cannot be used, or the service failed
    """
    from webhook.cli import demo as showing
    from webhook.cli.files import ManifestError

    try:
        sys.exit(0 if showing.show(files) else 1)
    except (ManifestError, showing.DemoError) as error:
        fail(error)


@main.command()
@click.option("--kubeconfig", type=FILE, help="The cluster. Default: as kubectl.")
@click.option("--context", help="The context of the kubeconfig. Default: its current one.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Only this one; may be repeated. Default: all.")
@click.option("--policy-namespace", metavar="NAMESPACE", default="mpijob-webhook", help="Where policy ConfigMaps are.")
@click.option("--kueue-namespace", metavar="NAMESPACE", default="kueue-system", help="Where Kueue's configuration is.")
@click.option("-o", "--output", type=FILE, help="The file to write. Default: standard output.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def snapshot(
    *, kubeconfig: Path | None, namespaces: tuple[str, ...], output: Path | None, force: bool, **where: Any
) -> NoReturn:
    """Write what a cluster holds to a file.

    The file is what the other commands take with --cluster: the jobs and policies there are, and of quotas, queues,
    nodes and all else only the fields that rules look at. No Secret is read, and no ConfigMap's data but that of
    policies and of Kueue's configuration. Jobs are kept as they are stored, with their environment: the file can be
    read by its owner alone.

    With --namespace, what is in other namespaces is unknown, not absent; rights to look into those suffice. Whatever
    cannot be read is told and stays unknown, which never refuses a job.

    \b
    Examples:
      mpijob-webhook snapshot -o cluster.yaml
      mpijob-webhook snapshot -n team-a -n team-b --context prod -o teams.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  written; kinds that the cluster does not have are no fault
      1  written, but some of it could not be read
      2  not written; the message says why
    """
    from webhook.cli import snapshot as snapshot_file

    if output is not None and output.exists() and not force:
        fail(f"{output} is there already, --force replaces it")
    sys.exit(snapshot_file.run(output, kubeconfig=kubeconfig, namespaces=namespaces, **where))


main.add_command(serve)
main.add_command(policy_commands.policy)
main.add_command(doctor)
main.add_command(certs)
