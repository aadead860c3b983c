"""The command `playground`, which serves the page on loopback."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from webhook.cli.options import KUEUE_NAMESPACE, POLICY_NAMESPACE, about_a_cluster, namespace_option
from webhook.cli.terminal import fail
from webhook.client.access import Access

PAGE: Final = Path(__file__).with_name("page")
FOLDER: Final = click.Path(path_type=Path)


@click.command()
@about_a_cluster("The cluster that the page can read. Default: none.")
@namespace_option("Read only this namespace; may be repeated.", "namespaces", multiple=True)
@POLICY_NAMESPACE
@KUEUE_NAMESPACE
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Port of 127.0.0.1.")
@click.option("--page", "folder", type=FOLDER, default=PAGE, show_default="the program's", help="Folder of the page.")
def playground(*, access: Access, namespaces: tuple[str, ...], port: int, folder: Path, **where: Any) -> NoReturn:
    """Show the verdict on a job in a browser while you type the job.

    The page takes a job, a policy and the objects of a cluster, and shows the verdict on the job and the injections,
    with reasons. It is served only on 127.0.0.1, until Ctrl-C, and sends nothing elsewhere. The address contains a
    secret: anyone who knows the address may use the page.

    With --kubeconfig, --context or --as the page can read that cluster with your rights, like `snapshot`. A job without
    a namespace is in the first namespace of --namespace, or in kubectl's default namespace.

    \b
    Examples:
      mpijob-webhook playground
      mpijob-webhook playground --kubeconfig ~/.kube/config -n team-a

    \b
    Exit code:
      0  ended by Ctrl-C
      2  the page cannot be served: the port is taken, the kubeconfig cannot be used, or the page is not built
         (`make page` in a checkout)
    """
    import asyncio
    from contextlib import suppress
    from functools import partial

    from webhook.cli import snapshot, world_sources
    from webhook.client import calls
    from webhook.client.calls import ClusterError
    from webhook.parts.playground.server import NotBuilt, Playground
    from webhook.parts.playground.verdicts import answer

    async def read_cluster() -> dict[str, Any]:
        async with await calls.connect(access) as api:
            objects = await world_sources.take(api, namespaces=namespaces, **where)
        return {"text": "".join(snapshot.text(objects)), "problems": [*objects.problems]}

    async def namespace_of_context() -> str:
        async with await calls.connect(access) as api:
            return api.namespace

    async def serve() -> None:
        served = Playground(folder, port=port)
        if access != Access():
            namespace = namespaces[0] if namespaces else await namespace_of_context()
            served.read_cluster = read_cluster
            served.answer = partial(answer, namespace=namespace, policy_namespace=where["policy_namespace"])
        runner = await served.start()
        try:
            click.echo(f"{served.url} (Ctrl-C ends it)")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve())
        except ClusterError as error:
            fail(error)
        except NotBuilt as error:
            fail(f"{error}: in a checkout, `make page` builds it")
        except OSError as error:
            fail(f"cannot listen on port {port}: {error.strerror}")
    sys.exit(0)
