"""The command `mpijob-webhook`, the group of all commands."""

import atexit
import gc
import io
import os
import sys
from collections.abc import Mapping
from typing import Final

import click

from webhook.cli import version
from webhook.cli.lazy_commands import commands
from webhook.cli.terminal import caution, printable
from webhook.kit.optional_parts import parts

COMMANDS: Final = {
    **{
        name: f"webhook.cli.{name}:{name}"
        for name in (
            "certs", "check", "completion", "convert", "demo", "diff", "doctor", "explain", "init", "plugins", "schema",
            "serve", "snapshot",
        )
    },
    "policy": "webhook.cli.policy.commands:policy",
    "rules": "webhook.cli.explain:rules",
    **{name: where for part in parts() for name, where in part.commands.items()},
}  # fmt: skip
"""The "module:name" of each command."""
REPORTS_PLUGINS: Final = frozenset({"plugins", "serve"})
"""Commands that report problems of plug-ins in their own output."""


@click.group(
    commands=commands(COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=version.show,
    help="Show the version and its environment, and exit.",
)
@click.option(
    "--plugins",
    metavar="NAMES",
    envvar="MPIJOB_WEBHOOK_PLUGINS",
    show_envvar=True,
    default="",
    show_default="none",
    help="Packages whose rules and injections are added, separated by commas; `all` for every installed one.",
)
@click.pass_context
def main(ctx: click.Context, plugins: str) -> None:
    """Admission webhook for Kubeflow MPIJobs (kubeflow.org/v2beta1).

    The webhook rejects a job when it is submitted, instead of letting it fail minutes later, and it injects missing
    settings. `check` gives the same verdict without a cluster.

    \b
    First steps:
      mpijob-webhook demo                  a demonstration with examples
      mpijob-webhook init                  a first job
      mpijob-webhook check job.yaml        would my job be admitted?
      mpijob-webhook why team-a/train      why does my job not run?
      mpijob-webhook explain worker-count  what does this rule check?

    Colours appear only on a terminal, and only if NO_COLOR is not set.
    """
    # The search for garbage in imported modules takes a fifth of the time of a short command.
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)
    # https://no-color.org
    ctx.color = False if os.environ.get("NO_COLOR") else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if plugins.strip():
        _load(ctx, plugins)


def _load(ctx: click.Context, plugins: str) -> None:
    from webhook.plugins import loading

    loading.load(plugins.split(","))
    if ctx.invoked_subcommand in REPORTS_PLUGINS:
        return
    _warn(loaded := loading.problems())
    # Plug-ins can also fail while the command runs.
    ctx.call_on_close(lambda: _warn(dict(loading.problems().items() - loaded.items())))


def _warn(problems: Mapping[str, str]) -> None:
    for name, problem in sorted(problems.items()):
        click.echo(f"{caution('warning')}: plug-in {printable(name)}: {printable(problem)}", err=True)
