"""The option `--version`."""

from collections.abc import Iterator

import click

from webhook import PROGRAM, __version__


def show(ctx: click.Context, _: click.Parameter, enabled: bool) -> None:
    if enabled and not ctx.resilient_parsing:
        for line in lines():
            click.echo(line)
        ctx.exit()


def lines() -> Iterator[str]:
    """The first line has only the version, for scripts."""
    import json
    import platform
    from pathlib import Path

    from webhook.api import crd_schema

    yield f"{PROGRAM} {__version__}"
    # hatch_build.py writes this file into packages. A checkout does not have it.
    built = Path(__file__).parents[1] / "build.json"
    if built.exists():
        facts = json.loads(built.read_text(encoding="utf-8"))
        yield f"commit {facts['commit']}"
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield f"jobs of {crd_schema.packaged().origin}"
