"""Calls wait for their turn, by a clock of the test's own."""

import asyncio
from typing import Any

from webhook.companions.paced import PacedClient


class Time:
    """A clock that only sleeping moves; who sleeps is woken in order."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


class Api:
    """Notes when it was called."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.calls: list[float] = []

    async def request(self, method: str, path: str, body: Any) -> dict[str, Any]:
        self.calls.append(self.time.now)
        return {"method": method, "path": path, "body": body}


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    time = Time()
    api: Any = Api(time)
    paced = PacedClient(api, rate=10, burst=5, sleep=time.sleep, clock=time.clock)
    for _ in range(25):
        await paced.request("GET", "/version")
    assert api.calls[:5] == [0] * 5
    assert [round(at, 6) for at in api.calls[5:]] == [round((n + 1) / 10, 6) for n in range(20)]
    assert paced.requests == 25


async def test_calls_at_the_same_time_share_the_rate() -> None:
    time = Time()
    api: Any = Api(time)
    paced = PacedClient(api, rate=10, burst=1, sleep=time.sleep, clock=time.clock)
    await asyncio.gather(*(paced.request("GET", "/version") for _ in range(11)))
    assert round(time.now, 6) == 1


async def test_a_pause_fills_the_burst_again_and_no_more() -> None:
    time = Time()
    api: Any = Api(time)
    paced = PacedClient(api, rate=10, burst=5, sleep=time.sleep, clock=time.clock)
    for _ in range(5):
        await paced.request("GET", "/version")
    time.now = 1000.0
    for _ in range(6):
        await paced.request("GET", "/version")
    assert [round(at, 6) for at in api.calls[5:]] == [1000.0] * 5 + [1000.1]


async def test_the_call_and_its_answer_are_passed_on() -> None:
    api: Any = Api(Time())
    answer = await PacedClient(api).request("PATCH", "/x", {"a": 1})
    assert answer == {"method": "PATCH", "path": "/x", "body": {"a": 1}}
