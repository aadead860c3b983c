"""What is said of a change of policies when the jobs that exist cannot be listed, or not in time."""

import asyncio
import re
from datetime import date
from typing import Any, NoReturn

import msgspec
import pytest

from tests.support import jobs
from tests.support.own_rules import document, rule
from webhook.client.wire import FaultReason, Page, PageMetadata, WatchFault
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import read
from webhook.server import cluster_link
from webhook.server.cluster_link import policy_impact
from webhook.work_limit import TooExpensive

JOB = msgspec.Raw(msgspec.json.encode(jobs.GOOD))
UNKNOWN = "what it would change is unknown: existing jobs"


class Lists:
    """Answers with these pages, and then never."""

    def __init__(self, *pages: list[msgspec.Raw] | Exception) -> None:
        self.pages = list(pages)

    async def list_page(self, _: str) -> Page[msgspec.Raw]:
        if not self.pages:
            await asyncio.Event().wait()
        page = self.pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return Page(PageMetadata("7", f"after {len(self.pages)}"), page)


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (Lists(), f"{UNKNOWN} were not listed in time"),
        (Lists(WatchFault(FaultReason.FORBIDDEN, "no")), f"{UNKNOWN} cannot be listed (forbidden: no)"),
    ],
)
async def test_nothing_is_known_of_the_jobs(lists: Any, said: str) -> None:
    assert await impact(lists) == [said]


async def test_what_was_judged_in_time_is_said_to_be_a_part() -> None:
    """The list went on for 25 s when the API server waits for 10, and a change of a policy failed for its advice."""
    (line,) = await impact(Lists([JOB] * 20))
    assert re.fullmatch(r"would newly deny none of the first \d+ jobs", line)


async def impact(lists: Any) -> list[str]:
    return await policy_impact(
        lists,
        before=PolicySet(),
        after=PolicySet(),
        view=NothingKnown(),
        today=date(2026, 11, 21),
        time_left=lambda: 0.5,
    )


class OnePage:
    """Answers with one page, and that is all."""

    async def list_page(self, _: str) -> Page[msgspec.Raw]:
        return Page(PageMetadata("7", ""), [JOB])


async def test_jobs_are_judged_by_own_rules_too() -> None:
    found = await policy_impact(
        OnePage(),  # type: ignore[arg-type]
        before=PolicySet(),
        after=PolicySet([Layer("mine", read(document(rule("job.workers < 1")), policy_model()))]),
        view=NothingKnown(),
        today=date(2026, 11, 21),
        time_left=lambda: 60.0,
    )
    assert found == ["would newly deny 1 of 1 jobs: custom/mine 1 (team-a/train)"]


async def test_a_job_that_is_too_expensive_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_expensive(_: object) -> NoReturn:
        raise TooExpensive

    monkeypatch.setattr(cluster_link, "limited", too_expensive)
    assert await impact(OnePage()) == ["would newly deny none of 0 jobs; 1 more are too expensive to judge"]
