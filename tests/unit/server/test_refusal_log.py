"""Who sends what is refused fills no log."""

from http import HTTPStatus

import pytest

from tests.support.logs import Log
from webhook.server.limits import MAX_LOGGED_REFUSALS
from webhook.server.log import TELL_SECONDS, RefusalLog
from webhook.server.metrics import PREFIX
from webhook.server.telemetry import Telemetry


class Refusing:
    """Requests that are refused, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = Log()
        self.telemetry = Telemetry(self.log)
        self.telemetry._refusals = RefusalLog(self.log, lambda: self.now)

    def refuse(self, times: int = 1, reason: str = "bad", peer: str = "192.0.2.1") -> None:
        for _ in range(times):
            self.telemetry.refused(None, HTTPStatus.BAD_REQUEST, reason, peer=peer)


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


def test_those_of_a_kind_are_told_once_and_then_counted(refusing: Refusing) -> None:
    refusing.refuse(1000)
    refusing.refuse(1, peer="192.0.2.2")
    said = {"webhook": None, "code": 400, "reason": "bad"}
    assert refusing.log.lines == [("warning", "refused", {**said, "peer": f"192.0.2.{peer}"}) for peer in (1, 2)]
    refusing.now += TELL_SECONDS
    refusing.refuse()
    again, refused = refusing.log.lines[2:]
    assert again == ("warning", "refused again", {**said, "peer": "192.0.2.1", "count": 999})
    assert refused == refusing.log.lines[0]
    counted = refusing.telemetry.registry.get_sample_value(PREFIX + "bad_requests_total", {"code": "400"})
    assert counted == 1002


def test_those_of_many_kinds_are_counted_together(refusing: Refusing) -> None:
    for number in range(MAX_LOGGED_REFUSALS + 5):
        refusing.refuse(2, f"reason {number}")
    assert len(refusing.log.lines) == MAX_LOGGED_REFUSALS
    refusing.now += TELL_SECONDS
    refusing.refuse()
    assert refusing.log.events("others refused") == [{"count": 10}]
    assert [again["count"] for again in refusing.log.events("refused again")] == [1] * MAX_LOGGED_REFUSALS
    assert refusing.log.told[-1] == "refused"


def test_what_is_far_apart_is_told_as_before(refusing: Refusing) -> None:
    for _ in range(3):
        refusing.refuse()
        refusing.now += TELL_SECONDS
    assert refusing.log.told == ["refused"] * 3
