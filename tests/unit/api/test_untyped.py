"""JSON of which nothing is certain."""

import time
from typing import Any

import msgspec
import pytest

from webhook.api import untyped
from webhook.cel import evaluation
from webhook.work_limit import TooExpensive


@pytest.mark.parametrize("read", [untyped.decode, lambda data: evaluation.read(msgspec.Raw(data))["value"]])
class TestNumbers:
    @pytest.mark.parametrize(
        "text",
        ["1.5", "-0.0", "1e3", "1E-7", "1e+308", "-1.7976931348623157e308", "5e-324", "1e-400", "0.1", "123456.789e-3"],
    )
    def test_they_are_what_the_decoder_makes_of_them(self, read: Any, text: str) -> None:
        found, expected = read(f'{{"value":{text}}}'.encode()), msgspec.json.decode(text)
        found = found["value"] if isinstance(found, dict) else found
        assert (type(found), repr(found)) == (float, repr(expected))

    @pytest.mark.parametrize("text", ["1e309", "-1e400", "1e+999999999"])
    def test_beyond_doubles_there_are_none(self, read: Any, text: str) -> None:
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)
        with pytest.raises(msgspec.DecodeError, match="out of range"):
            read(f'{{"value":{text}}}'.encode())

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "1.", ".5", "1e", "+1.0", "1_0.5"])
    def test_what_is_no_json_is_none(self, read: Any, text: str) -> None:
        with pytest.raises(msgspec.DecodeError):
            read(f'{{"value":{text}}}'.encode())


def test_whole_numbers_stay_whole() -> None:
    assert [*map(type, untyped.decode(b"[1, 9223372036854775808, 1.0]"))] == [int, int, float]


def test_many_large_numbers_take_little_time() -> None:
    data = b"[" + b",".join([b"1e+308"] * 10_000) + b"]"
    began = time.thread_time()
    untyped.decode(data)
    assert time.thread_time() - began < 0.05  # 100 ms without the hook


def test_the_limit_on_processor_time_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> float:
        raise TooExpensive

    decoder = msgspec.json.Decoder(float_hook=interrupted)
    with pytest.raises(TooExpensive):
        decoder.decode(b"[1.5]")
