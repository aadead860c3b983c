"""What companions watch is run, measured, and told of where it cannot be read."""

from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

from tests.support.job_lives import Seen
from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.companions.job_watches import LAUNCHERS
from webhook.server.companions import run_watch
from webhook.server.ops import Readiness
from webhook.server.telemetry import Telemetry


class Refused(Seen[Any]):
    """A watch that has no right to be one."""

    known = False
    ran = 0

    async def run(self) -> Any:
        self.ran += 1
        self.reason = "forbidden: jobs.batch is forbidden"


async def test_what_cannot_be_read_is_a_concern_and_reviews_go_on() -> None:
    watch, telemetry, readiness = Refused(LAUNCHERS), Telemetry(Log()), Readiness()
    around: Any = SimpleNamespace(telemetry=telemetry, readiness=readiness)
    async with AsyncExitStack() as stack:
        await run_watch(stack, around, watch)
        await until(lambda: watch.ran)
        told = "[!]unknown-launchers: nothing is known of launchers: forbidden: jobs.batch is forbidden"
        assert readiness.report() == f"{told}\nreadyz check passed\n"
        assert telemetry.registry.get_sample_value("mpijob_webhook_cache_synced", {"kind": "launchers"}) == 0
        watch.known = True
        assert readiness.report() == "readyz check passed\n"
        watch.known, watch._not_found = False, True  # not installed
        assert readiness.report() == "readyz check passed\n"
