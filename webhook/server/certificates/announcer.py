"""What happens to certificates, in log, metrics and Events."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress

from certs.notice import Notice
from webhook.client.calls import Client, ClusterError
from webhook.client.events import write_event
from webhook.server.telemetry import Telemetry


class Announcer:
    """Reports each notice; Events are about the object `about` in `namespace`, and there are none without `api`."""

    def __init__(self, api: Client | None, namespace: str, about: Mapping[str, str], telemetry: Telemetry) -> None:
        self._api = api
        self._namespace = namespace
        self._about = about
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, notice: Notice) -> None:
        """Log and count the notice; its Event is written in the background."""
        log = self._telemetry.log.warning if notice.warning else self._telemetry.log.info
        log("certificates", reason=notice.reason, message=notice.message)
        self._telemetry.metrics.add("cert_notices_total", notice.reason)
        if self._api is not None:
            task = asyncio.create_task(self._write_event(self._api, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _write_event(self, api: Client, notice: Notice) -> None:
        with suppress(ClusterError, RuntimeError):  # of a client that is closed; the notice is in the log
            await write_event(
                api,
                self._namespace,
                self._about,
                reason=notice.reason,
                message=notice.message,
                kind="Warning" if notice.warning else "Normal",
                key=f"{notice.reason} {notice.message} {socket.gethostname()}",
            )
