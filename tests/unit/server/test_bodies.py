"""Request bodies that are large, slow, incomplete or in pieces."""

import pytest

from tests.support import jobs
from tests.support.live_service import head, live
from tests.support.reviews_to_send import GOOD
from webhook.server import review_port
from webhook.server.limits import MAX_BODY_BYTES


def padded(size):
    return GOOD + b" " * (size - len(GOOD))


def test_largest_body_of_an_api_server_is_accepted(shared):
    assert shared.post("/validate-mpijob", padded(MAX_BODY_BYTES)).status == 200


def test_body_beyond_the_limit_is_rejected(shared):
    response = shared.post("/validate-mpijob", padded(MAX_BODY_BYTES + 1))
    assert (response.status, response.body) == (413, b"the body is larger than 7340032 bytes\n")


def test_status_100_is_sent_to_a_client_that_expects_it(connection):
    connection.send(head("/validate-mpijob", content_length=str(len(GOOD)), expect="100-continue"))
    assert connection.receive().status == 100
    connection.send(GOOD)
    assert connection.receive().status == 200


@pytest.mark.parametrize("sent", [b"", GOOD[:100]], ids=["nothing", "the beginning"])
def test_missing_or_incomplete_body_is_a_504(sent):
    with live() as service:
        connection = service.connect()
        connection.send(head("/validate-mpijob?timeout=50ms", content_length=str(len(GOOD))), sent)
        response = connection.receive()
        connection.close()
        assert (response.status, response.body) == (504, b"no verdict within 0.04 s\n")
        assert service.metric("deadline_exceeded_total", webhook="validate") == 1
        assert service.metric("in_flight") == 0


def test_disconnection_during_the_body_is_logged_and_is_no_internal_error():
    with live() as service:
        connection = service.connect()
        connection.send(head("/mutate-mpijob", content_length=str(len(GOOD))), GOOD[:100])
        service.wait_until(lambda: service.service.server.in_flight == 1)
        connection.close()
        service.wait_until(lambda: service.log("refused"))
        (line,) = service.log("refused")
        assert (line["code"], line["reason"], line["level"]) == (400, "the body is incomplete", "warning")
        assert service.metric("internal_errors_total", webhook="mutate") == 0
        assert service.post("/mutate-mpijob", GOOD).status == 200


def test_half_sent_bodies_do_not_block_other_requests():
    """Formerly, 64 incomplete bodies blocked the service for seven seconds, repeatedly."""
    with live() as service:
        slow = [service.connect() for _ in range(100)]
        for connection in slow:
            connection.send(head("/validate-mpijob", content_length=str(len(GOOD))), GOOD[:10])
        service.wait_until(lambda: service.service.server.in_flight == 100)
        assert service.metric("in_flight") == 100
        assert service.post("/validate-mpijob", GOOD).status == 200
        for connection in slow:
            connection.send(GOOD[10:])
            assert connection.receive().status == 200
            connection.close()
        assert service.metric("in_flight") == 0


def test_total_size_of_large_bodies_is_limited(monkeypatch):
    monkeypatch.setattr(review_port, "MAX_LARGE_BODIES_BYTES", 300_000)
    with live() as service:
        slow = service.connect()
        slow.send(head("/validate-mpijob", content_length="200001"), b" " * 200_000)
        service.wait_until(lambda: service.service.server.in_flight == 1)
        large = service.post("/validate-mpijob", b" " * 200_000 + GOOD)
        assert (large.status, large.body) == (503, b"too many large bodies at once\n")
        assert service.metric("shed_total", webhook="validate") == 1
        assert service.log("refused") == []
        assert service.post("/validate-mpijob", GOOD).status == 200
        slow.close()
        service.wait_until(lambda: service.service.server.in_flight == 0)
        assert service.post("/validate-mpijob", b" " * 200_000 + GOOD).status == 200


@pytest.mark.parametrize("size", [257, 2**20])
def test_very_long_uid_is_not_in_the_reply(connection, size):
    response = connection.post("/validate-mpijob", jobs.body(jobs.GOOD, uid="u" * size))
    assert (response.status, len(response.body) < 200) == (400, True)
