"""The command `playground`, which serves the page on loopback."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from webhook.cli.terminal import fail

PAGE: Final = Path(__file__).with_name("page")
FOLDER: Final = click.Path(path_type=Path)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Port of 127.0.0.1.")
@click.option("--page", "folder", type=FOLDER, default=PAGE, show_default="the program's", help="Folder of the page.")
def playground(*, port: int, folder: Path) -> NoReturn:
    """Show the verdict on a job in a browser while you type the job.

    The page takes a job, a policy and the objects of a cluster (the output of `snapshot`), and shows the verdict on the
    job and the injections, with reasons. It is served only on 127.0.0.1, until Ctrl-C, and sends nothing elsewhere. The
    address contains a secret: anyone who knows the address may use the page.

    \b
    Example:
      mpijob-webhook playground

    \b
    Exit code:
      0  ended by Ctrl-C
      2  the page cannot be served: the port is taken, or the page is not built
         (`make page` in a checkout)
    """
    import asyncio
    from contextlib import suppress

    from webhook.parts.playground.server import NotBuilt, Playground

    async def serve() -> None:
        served = Playground(folder, port=port)
        runner = await served.start()
        try:
            click.echo(f"{served.url} (Ctrl-C ends it)")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve())
        except NotBuilt as error:
            fail(f"{error}: in a checkout, `make page` builds it")
        except OSError as error:
            fail(f"cannot listen on port {port}: {error.strerror}")
    sys.exit(0)
