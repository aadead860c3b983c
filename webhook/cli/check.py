"""The command `check`."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook.cli import options
from webhook.cli.terminal import UNUSABLE, caution, complain, faint, printable
from webhook.client.access import Access
from webhook.kit.optional_parts import parts

if TYPE_CHECKING:
    from webhook.cli.files import Manifest, ManifestError
    from webhook.cli.job_world import JobWorld

    Judge = Callable[[Manifest], Any]
    """Returns the verdict on an object, or None for an object of another kind."""

CHECKS: Final = tuple(part.check for part in parts() if part.check)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=options.files_too)
@click.option(
    "--policy", type=options.FILE, help="Policies (MPIJobPolicy, or ConfigMaps with it) that replace all others."
)
@options.CLUSTER_FILE
@options.about_a_cluster("The cluster to check against, as far as you may read it. Default: none.")
@options.POLICY_NAMESPACE
@options.flags({part_check.option: part_check.help for part_check in CHECKS})
@options.namespace_option("The namespace of jobs that name none. Default: the namespace of the cluster's context.")
@click.option("-R", "--recursive", is_flag=True, help="Search directories at any depth, except hidden ones.")
@click.option(
    "--ignore-others", is_flag=True, help="Skip files without an MPIJob; exit with 0 if all files are skipped."
)
@click.option(
    "--fail-on",
    type=click.Choice(["deny", "warn"]),
    default="deny",
    help="Exit with 1 on rejections only, or also on warnings. Injections are not warnings.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show only jobs that fail.")
@options.output_option(("text", "json", "junit", "github"), "The output format: for people, programs or CI systems.")
def check(
    *,
    files: tuple[str, ...],
    policy: Path | None,
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    namespace: str | None,
    recursive: bool,
    ignore_others: bool,
    fail_on: str,
    quiet: bool,
    output: str,
    **of_parts: bool,
) -> NoReturn:
    """Check the MPIJobs in files, without a cluster.

    Like the webhook, the command injects missing fields into each job, and then evaluates every rule.

    A FILE is YAML or JSON with any number of objects, a directory (its .yaml, .yml and .json files), a pattern such as
    'jobs/**/*.yaml', or - for standard input. Objects of other kinds are skipped.

    With --kubeconfig, --context or --as, the command reads the cluster's schema of MPIJobs, policies and other objects,
    as far as you may read them. The component `check-by-users` of the manifests lets data scientists read them.

    With --cluster, a file from `mpijob-webhook snapshot` stands for the cluster. --policy replaces the cluster's
    policies. Without a cluster, the built-in policy and the schema of mpi-operator v0.8.0 apply. The last lines list
    rules that could not be evaluated.

    A job that exists in the cluster is checked as an update by `kubectl apply`. Faults that the existing job already
    has are warnings.

    The command rejects unknown fields and values of a wrong type, as the API server does for kubectl.

    With --trainer, TrainJobs and runtimes are judged as new objects, without their schemas. A TrainJob is judged only
    if its runtime is among the FILEs or in the cluster. The last lines name TrainJobs that were not judged.

    \b
    Examples:
      mpijob-webhook check job.yaml
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
      1  at least one job would be rejected, or with --fail-on warn has a warning
      2  unusable input: a file, the policy or the cluster file is broken, or no file has a job
    """
    optional_checks = {part_check.option: part_check for part_check in CHECKS}
    checks = [optional_checks[option] for option in options.given(optional_checks, of_parts)]
    from webhook.cli import files as manifests
    from webhook.cli import job_check, job_verdict
    from webhook.cli.limits import MAX_VERDICTS_IN_FULL

    kinds = ("MPIJob", *chain.from_iterable(part_check.kinds for part_check in checks))
    only = (*kinds, *manifests.JOB_SIGNS) if ignore_others else ()
    objects, errors = manifests.load(files, recursive=recursive, only=only)
    errors += _misspelt(objects)
    subject = ", ".join(("MPIJob", *(part_check.subject for part_check in checks)))
    spaces = [manifest.namespace or namespace for manifest in objects if manifest.kind in kinds]
    world = world_of(policy, cluster, access, spaces, policy_namespace)
    namespace = namespace or world.namespace
    judges = [resolve_name(part_check.judge)(objects, world, namespace, cluster, access) for part_check in checks]
    judges.insert(0, _by_rules(world, namespace))
    judged = [
        next((verdict for judge in judges if (verdict := judge(manifest)) is not None), None) for manifest in objects
    ]
    verdicts = [verdict for verdict in judged if verdict is not None]
    failing = [
        verdict for verdict in verdicts if any(fail_on == "warn" or not problem.warns for problem in verdict.problems())
    ]
    shown = failing if quiet else verdicts
    with_notes = output == "text" and not quiet
    if with_notes:
        skipped = (manifest for manifest, verdict in zip(objects, judged, strict=True) if verdict is None)
        _note(f"{manifest.source}: skipped {_skipped(manifest)}" for manifest in skipped)
    if output in {"text", "json"}:
        summary = job_verdict.summary(verdicts)
        many = len(verdicts) > MAX_VERDICTS_IN_FULL
        printed = [verdict for verdict in shown if not many or any(verdict.problems())]
        lines = [line for verdict in printed for line in verdict.as_text(short=many or quiet)]
        text = lines if quiet else [*lines, *([""] if many and lines else ()), *summary]
        options.show(output, text, [verdict.as_json() for verdict in shown])
    else:
        from webhook.cli.check_report import in_form

        options.show("text", in_form(output, shown, errors, warnings_fail=fail_on == "warn"), None)
    if with_notes:
        _note(job_check.not_judged(verdicts, world))
    nothing = not verdicts and not ignore_others
    if nothing and not errors:
        complain(f"no {subject} in {', '.join(files)}")
    complain(*errors)
    sys.exit(UNUSABLE if errors or nothing else options.REFUSED if failing else 0)


def _misspelt(objects: "Iterable[Manifest]") -> "list[ManifestError]":
    """Errors for objects whose kind differs from a kind of an optional check only in its case, such as `trainjob`."""
    from webhook.cli.files import ManifestError

    right = {kind.lower(): kind for part_check in CHECKS for kind in part_check.kinds}
    errors = []
    for manifest in objects:
        kind = right.get(manifest.kind.lower(), manifest.kind)
        if kind != manifest.kind:
            fault = f'kind: "{manifest.kind}" is not supported. Write {kind}.'
            errors.append(ManifestError(f"{manifest.source}: {fault}", manifest.source))
    return errors


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(faint(printable(line)), err=True)


def _skipped(manifest: "Manifest") -> str:
    hint = next((f", which {check.option} checks" for check in CHECKS if check.kinds[0] == manifest.kind), "")
    return f"{manifest.kind} {manifest.title}{hint}"


def world_of(
    policy: Path | None, cluster: Path | None, access: Access, namespaces: Sequence[str | None], policy_namespace: str
) -> "JobWorld":
    """The inputs of the verdicts on jobs in `namespaces`."""
    from webhook.cli import job_check, job_world

    instead = job_check.load_policies(policy) if policy else None
    world = job_world.of_nothing()
    if cluster or access != Access():
        from webhook.cli import world_sources

        world = world_sources.of_options(cluster, access, namespaces, policy_namespace=policy_namespace)
    if access != Access():
        world.may_exempt = lambda namespace, rules: options.with_api(
            access, lambda api: world_sources.may_exempt(api, namespace, rules)
        )
    world.instead = instead
    if instead is None:
        for problem in world.problems:
            click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return world


def _by_rules(world: "JobWorld", namespace: str) -> "Judge":
    from webhook.cli.job_check import check, is_job

    return lambda manifest: check(manifest, world, namespace=namespace) if is_job(manifest) else None
