"""The command `check`: the verdict on jobs in files, or of a Pod Security level on pods in files."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from webhook.cli.options import (
    CLUSTER_FILE,
    FILE,
    POLICY_NAMESPACE,
    REFUSED,
    about_a_cluster,
    files_too,
    namespace_option,
    show,
    with_api,
)
from webhook.cli.terminal import UNUSABLE, caution, complain, fail, faint, printable
from webhook.client.access import DEFAULT_NAMESPACE, Access

if TYPE_CHECKING:
    from webhook.cli.files import Manifest
    from webhook.cli.job_world import JobWorld


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@click.option("--policy", type=FILE, help="Policies (MPIJobPolicy, or ConfigMaps with it) in place of all others.")
@CLUSTER_FILE
@about_a_cluster("The cluster whose verdict counts, as far as you may read it. Default: none.")
@POLICY_NAMESPACE
@click.option("--level", metavar="LEVEL[@VERSION]", help="Check all pods by this Pod Security level, and no rules.")
@click.option(
    "--trainer",
    is_flag=True,
    help="Check TrainJobs of Kubeflow Trainer and their MPI runtimes too, as `serve --trainer` does.",
)
@namespace_option("For jobs that name no namespace. Default: that of the cluster's context.")
@click.option("-R", "--recursive", is_flag=True, help="Look into directories however deep; what is hidden is left out.")
@click.option(
    "--ignore-others", is_flag=True, help="Pass over files without an MPIJob, whatever they are; 0 if all are."
)
@click.option(
    "--fail-on",
    type=click.Choice(["deny", "warn"]),
    default="deny",
    help="What ends with 1: a refusal, or also a warning. What was injected is no warning.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show only jobs that fail.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "sarif", "junit", "github"]),
    default="text",
    help="For people, for programs, or for CI systems.",
)
def check(
    *,
    files: tuple[str, ...],
    policy: Path | None,
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    level: str | None,
    trainer: bool,
    namespace: str | None,
    recursive: bool,
    ignore_others: bool,
    fail_on: str,
    quiet: bool,
    output: str,
) -> NoReturn:
    """Check the MPIJobs in files, without a cluster.

    Each job goes the way that it goes through the webhook: what is missing is injected, then every rule looks at it. A
    FILE may hold several documents and lists, be JSON, be a directory (its .yaml, .yml and .json files), a pattern such
    as 'jobs/**/*.yaml', or be - for standard input. Objects of other kinds are passed over.

    With --kubeconfig, --context or --as, what counts is that cluster: its schema of MPIJobs, its policies, and what
    rules look at, in the namespaces of the jobs and as far as you may read it. The component `check-by-users` of the
    manifests gives data scientists the right. Or a --cluster file, as `mpijob-webhook snapshot` writes it, stands for
    the cluster. --policy takes the place of its policies. Without a cluster the built-in policy counts, and the schema
    of mpi-operator v0.8.0. What could not be judged, and why, is said at the end.

    A job that the cluster holds already is checked as a change to it, as `kubectl apply` would make it. What is wrong
    with it as it stands, for which that is not refused, is shown as a warning.

    Fields that MPIJobs do not have are refused, as kubectl has the API server do it (other clients lose them with no
    more than a warning), and so are values of a wrong type.

    With --trainer, TrainJobs and runtimes are judged as new ones, and not by their schemas. A runtime has to be among
    the FILEs, in the --cluster file, or in the cluster: without it a TrainJob is not judged, which is said at the end.

    With --level, what is checked are the pods of all Kubernetes' workloads and of MPIJobs, as they are written.

    \b
    Examples:
      mpijob-webhook check job.yaml
      mpijob-webhook check manifests/ --level restricted@v1.30
      mpijob-webhook check manifests/ --policy policy.yaml
      kustomize build . | mpijob-webhook check - -o json
      helm template . | mpijob-webhook check - --fail-on warn
      mpijob-webhook check -R . --ignore-others -o github
      kubectl get namespaces,mpijobs -A -o yaml > cluster.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml
      mpijob-webhook check job.yaml --kubeconfig ~/.kube/config
      kubectl apply --dry-run=server -f job.yaml

    \b
    Exit code:
      0  every job would be admitted
      1  at least one would be refused, or with --fail-on warn has a warning
      2  unusable input: a file, the policy or the cluster file is broken, or there is nothing to check
    """
    in_a_cluster = access != Access()
    if level and (policy or cluster or in_a_cluster or ignore_others or trainer):
        other = "--policy, --cluster, --kubeconfig, --trainer or --ignore-others"
        fail(f"--level looks at nothing but the pods, so it takes no {other}")
    if cluster and in_a_cluster:
        fail("--cluster and --kubeconfig, --context or --as exclude each other")
    from webhook.cli import files as manifests

    kinds = ("MPIJob", "TrainJob", "TrainingRuntime") if trainer else ("MPIJob",)
    found, errors = manifests.load(files, recursive=recursive, only=kinds if ignore_others else ())
    if level is not None:
        checker = _level_checker(level, namespace or DEFAULT_NAMESPACE)
    else:
        spaces = [each.namespace or namespace for each in found if each.kind in kinds]
        world = world_of(policy, cluster, access if in_a_cluster else None, spaces, policy_namespace)
        checker = _job_checker(world, namespace or world.namespace)
        if trainer:
            runtimes = _runtimes(found, cluster, access if in_a_cluster else None, namespace or world.namespace)
            checker = _with_trainer(checker, world, runtimes, namespace or world.namespace)
    checked = [manifest for manifest in found if checker.concerns(manifest)]
    verdicts = [checker.check(manifest) for manifest in checked]
    failing = [verdict for verdict in verdicts if _fails(verdict, fail_on)]
    shown = failing if quiet else verdicts
    talks = output == "text" and not quiet
    if talks:
        others = (each for each in found if not checker.concerns(each))
        _tell(f"{each.source}: passed over {each.kind} {each.title}{_hint(each)}" for each in others)
    if output in {"text", "json", "yaml"}:
        lines = (line for verdict in shown for line in verdict.as_text()) if quiet else checker.report(verdicts)
        show(output, lines, [verdict.as_json() for verdict in shown])
    else:
        from webhook.cli.check_report import in_form

        show("text", in_form(output, shown, errors, warnings_fail=fail_on == "warn"), None)
    if talks:
        _tell(checker.not_judged(verdicts))
    nothing = not checked and not ignore_others
    if nothing and not errors:
        complain(f"no {checker.subject} in {', '.join(files)}")
    complain(*errors)
    sys.exit(UNUSABLE if errors or nothing else REFUSED if failing else 0)


def _fails(verdict: Any, fail_on: str) -> bool:
    return any(fail_on == "warn" or not problem.warns for problem in verdict.problems())


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(faint(printable(line)), err=True)


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
    not_judged: Callable[[Sequence[Any]], Iterator[str]] = lambda _: iter(())
    """What the verdicts do without, in lines."""


def world_of(
    policy: Path | None,
    cluster: Path | None,
    access: Access | None,
    namespaces: Sequence[str | None],
    policy_namespace: str,
) -> "JobWorld":
    """All that the verdicts depend on besides the jobs, which are in these namespaces."""
    from webhook.cli import job_check, job_world

    instead = job_check.load_policies(policy) if policy else None
    if cluster:
        from webhook.cli import world_sources
        from webhook.client.calls import ClusterError

        try:
            world = world_sources.of_file(cluster, policy_namespace=policy_namespace)
        except ClusterError as error:
            fail(*str(error).splitlines())
    elif access is not None:
        from webhook.cli import world_sources

        world = with_api(
            access, lambda api: world_sources.of_cluster(api, namespaces, policy_namespace=policy_namespace)
        )
        world.may_exempt = lambda namespace, rules: with_api(
            access, lambda api: world_sources.may_exempt(api, namespace, rules)
        )
    else:
        world = job_world.of_nothing()
    world.instead = instead
    if instead is None:
        for problem in world.problems:
            click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return world


def _job_checker(world: "JobWorld", namespace: str) -> Checker:
    from webhook.cli import job_check, job_verdict

    check = partial(job_check.check, world=world, namespace=namespace)
    return Checker("MPIJob", job_check.is_job, check, job_verdict.report, partial(job_check.not_judged, world=world))


def _with_trainer(checker: Checker, world: "JobWorld", runtimes: "Sequence[Manifest]", namespace: str) -> Checker:
    """One that checks TrainJobs and runtimes too."""
    from webhook.cli import train_job_check

    def check(manifest: "Manifest") -> Any:
        if checker.concerns(manifest):
            return checker.check(manifest)
        return train_job_check.check(manifest, world, runtimes=runtimes, namespace=namespace)

    concerns: Callable[[Manifest], bool] = lambda each: checker.concerns(each) or train_job_check.concerns(each)  # noqa: E731
    return replace(checker, subject="MPIJob, TrainJob or MPI runtime", concerns=concerns, check=check)


def _runtimes(
    found: "Sequence[Manifest]", cluster: Path | None, access: Access | None, namespace: str
) -> "list[Manifest]":
    """What TrainJobs may be made of: what is in the files counts before what the cluster has."""
    from webhook.cli import files as manifests
    from webhook.cli import train_job_check

    more: list[Manifest] = []
    if cluster:
        more, _ = manifests.load([str(cluster)])
    elif access is not None:
        jobs = [each for each in found if each.kind == "TrainJob" and train_job_check.concerns(each)]
        more = with_api(access, lambda api: train_job_check.of_cluster(api, jobs, namespace))
    return [*found, *more]


def _hint(manifest: "Manifest") -> str:
    return ", which --trainer checks" if manifest.kind == "TrainJob" else ""


def _level_checker(text: str, namespace: str) -> Checker:
    from webhook.cli import level_check

    try:
        level = level_check.parse(text)
    except ValueError as error:
        fail(f"--level: {error}")
    check = partial(level_check.check, level=level, namespace=namespace)
    return Checker("pods", level_check.has_pods, check, level_check.report)
