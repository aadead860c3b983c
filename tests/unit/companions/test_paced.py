"""Calls wait for their turn, in virtual time."""

import asyncio
from typing import Any

import pytest

from tests.support.virtual_time import run
from webhook.companions.reconciler import PacedClient


class Api:
    """Notes when it was called."""

    def __init__(self) -> None:
        self.calls: list[float] = []

    async def request(self, method: str, path: str, body: Any) -> dict[str, Any]:
        self.calls.append(round(asyncio.get_running_loop().time(), 6))
        return {"method": method, "path": path, "body": body}


def called(*calls: int, burst: int, pause: float = 0) -> list[float]:
    """When so many calls come through, 10 a second; there is a `pause` after each number of them."""
    api: Any = Api()

    async def call() -> None:
        paced = PacedClient(api, rate=10, burst=burst)
        for number in calls:
            await asyncio.gather(*(paced.request("GET", "/version") for _ in range(number)))
            await asyncio.sleep(pause)
        assert paced.requests == sum(calls)

    run(call())
    return api.calls  # type: ignore[no-any-return]


TENTHS = [round(n / 10, 6) for n in range(1, 21)]


@pytest.mark.parametrize("calls", [(25,), (1,) * 25], ids=["at the same time", "one after the other"])
def test_a_burst_goes_at_once_and_the_rest_at_the_rate(calls: tuple[int, ...]) -> None:
    assert called(*calls, burst=5) == [0] * 5 + TENTHS


def test_a_pause_fills_the_burst_again_and_no_more() -> None:
    assert called(5, 6, burst=5, pause=1000) == [0] * 5 + [1000] * 5 + [1000.1]


async def test_the_call_and_its_answer_are_passed_on() -> None:
    answer = await PacedClient(Api()).request("PATCH", "/x", {"a": 1})  # type: ignore[arg-type]  # it has what is called
    assert answer == {"method": "PATCH", "path": "/x", "body": {"a": 1}}
