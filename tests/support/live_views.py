"""The service's views and watches of a real cluster, for the duration of a test."""

import asyncio
import gc
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_kube_config

from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.cluster.resource import WatchedPlace
from webhook.server.background import at_work
from webhook.server.log import make_log


@asynccontextmanager
async def connected(kubeconfig: Path, **options: Any) -> AsyncIterator[Connection]:
    configuration = Configuration()
    await load_kube_config(  # type: ignore[no-untyped-call]
        config_file=str(kubeconfig), client_configuration=configuration, persist_config=False
    )
    try:
        async with ApiClient(configuration) as api:
            yield Connection(api, **options)
    finally:
        end_connections()
        await asyncio.sleep(0)
        gc.collect()  # leaked objects are reported in this test, not in the next one


def end_connections() -> None:
    """Abort open connections of cancelled calls. Their TLS shutdown cannot finish after the event loop ends.

    On a busy machine, a dozen watches may be starting when a test ends.
    """
    loop: Any = asyncio.get_running_loop()
    for transport in [*loop._transports.values()]:
        if isinstance(transport.get_protocol(), SSLProtocol):
            transport.abort()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event for the condition
            await asyncio.sleep(0.02)


@asynccontextmanager
async def viewing(
    kubeconfig: Path, log: Path, *, places: Mapping[WatchedPlace, str], **options: Any
) -> AsyncIterator[LiveView]:
    """A live view that has read everything. It stays valid for some minutes after the block."""
    with log.open("wb") as stream:
        async with connected(kubeconfig, **options) as connection:
            view = LiveView(connection, log=make_log(stream), places=places)
            async with at_work(view.run):
                await view.settled()
                yield view
