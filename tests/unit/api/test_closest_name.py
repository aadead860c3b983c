import pytest

from webhook.api.names import closest_name


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("datset", ["dataset", "data", "x"], "dataset"),
        ("data", ["team-a-training-data-2026", "zzz"], "team-a-training-data-2026"),
        ("data", ["models", "cache"], None),
        ("data", [], None),
        ("", ["data"], None),
        ("gpu", ["gpu-nodes-of-the-team"], "gpu-nodes-of-the-team"),
        ("d", ["shared-memory"], None),
        ("a", ["apiVersion"], None),
        ("db", ["dbs"], "dbs"),
    ],
)
def test_meant(name: str, known: list[str], expected: str | None) -> None:
    assert closest_name(name, known) == expected


def test_only_some_of_very_many_are_compared() -> None:
    assert closest_name("dataset", [*(f"zzzz{i:03}" for i in range(2000)), "datasets"]) is None
    assert closest_name("dataset", [*(f"zzzz{i:03}" for i in range(1999)), "datasets"]) == "datasets"


@pytest.mark.timeout(20)
def test_the_likeliest_of_many_similar_ones() -> None:
    known = [f"resnet-data-{number:04}" for number in range(2000)]
    assert closest_name("resnet-data-1234x", known) == "resnet-data-1234"
    assert closest_name("x" * 1_000_000, known) is None
