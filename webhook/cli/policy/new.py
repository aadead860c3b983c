"""The command `policy new`."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from webhook.cli.options import FILE, POLICY_NAMESPACE
from webhook.cli.terminal import fail


@click.command()
@click.argument("name")
@click.option("--from", "source", metavar="FILE", help="A policy to start from. Default: a policy without settings.")
@click.option("-l", "--selector", help="The namespaces of the policy, in kubectl's selector syntax. Default: all.")
@click.option("--mode", type=click.Choice(["enforce", "warn", "audit"]), help="The strictest action of a rule.")
@click.option("--priority", type=int, help="The policy with the highest priority wins.")
@click.option("--inject-only", metavar="IDS", help="Allow only these injections, separated by commas; '' allows none.")
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="A setting; repeatable.")
@click.option("--into", metavar="DIR", help="Write to DIR/NAME.yaml, and a first test to DIR/tests/NAME.yaml.")
@click.option("--job", type=FILE, help="The job of the first test. Default: a small valid job.")
@POLICY_NAMESPACE
def new(
    *,
    name: str,
    into: str | None,
    job: Path | None,
    policy_namespace: str,
    settings: tuple[str, ...],
    **values: Any,
) -> NoReturn:
    """Write a policy as a complete ConfigMap.

    The ConfigMap has the label and the namespace by which the service finds policies. `kubectl apply -f -` creates the
    ConfigMap in the cluster, or replaces the ConfigMap with the same NAME.

    With --from, the options replace values of the policy in FILE. Comments are lost.

    With --into, the policy is written to a file. A first test is written to another file. The test expects the current
    outcome for a job.

    \b
    Examples:
      mpijob-webhook policy new warn --mode warn --selector '!mpijob-enforced' | kubectl apply -f -
      mpijob-webhook policy new premium -l 'tier in (gold,silver)' --priority 10 > premium.yaml
      mpijob-webhook policy new dev -l tier=dev --set rules.worker-count.max=8 --into policies
      mpijob-webhook policy new first --from base.yaml --mode audit --inject-only labels,mpi-env
      mpijob-webhook policy new first --mode warn | mpijob-webhook policy replay --policy -

    \b
    Exit code:
      0  the policy was written
      2  unusable input: the name, an option or the file; or a file to be written exists already
    """
    from webhook.cli.policy import configmap
    from webhook.policy.document import PolicyError

    if job is not None and into is None:
        fail("--job is for the first test, which needs a folder: add --into")
    try:
        text = configmap.text(name, policy_namespace, settings=settings, **values)
        if into is None:
            click.echo(text, nl=False)
        else:
            _write(Path(into), name, text, job)
    except PolicyError as error:
        fail(*str(error).splitlines())
    except ValueError as error:
        fail(error)
    sys.exit(0)


def _write(folder: Path, name: str, text: str, job: Path | None) -> None:
    from webhook.cli.policy import first_test

    policy, test = folder / f"{name}.yaml", folder / "tests" / f"{name}.yaml"
    for path in (policy, test):
        if path.exists():
            raise ValueError(f"{path} exists already: use a different name or folder, or remove it")
    content = first_test.text(text, named=f"../{name}.yaml", job=job)
    try:
        test.parent.mkdir(parents=True, exist_ok=True)
        policy.write_text(text, encoding="utf-8")
        test.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {error.filename}: {error.strerror}") from None
    click.echo(f"{policy}\n{test}")
