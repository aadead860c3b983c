"""Each cause in docs/reference/real-jobs.md has tests, and these tests exist."""

import importlib
import re

import pytest

from tests.support.paths import ROOT

ROWS = re.findall(
    r"^\| (\d+) \| .* \| .* \| (.*) \|$", (ROOT / "docs/reference/real-jobs.md").read_text(), re.MULTILINE
)
TESTS = sorted({name for _, tests in ROWS for name in re.findall(r"`([^`]+)`", tests)})


def test_every_cause_has_a_test() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, 45))
    assert [number for number, tests in ROWS if "`" not in tests] == []


@pytest.mark.parametrize("name", TESTS)
def test_the_test_of_a_cause_exists(name: str) -> None:
    found = re.fullmatch(r"(tests/[\w/]+)\.py::(?:(Test\w+)::)?(test_\w+)(?:\[(.+)\])?", name)
    assert found is not None
    path, group, function, case = found.groups()
    module = importlib.import_module(path.replace("/", "."))
    assert callable(getattr(getattr(module, group) if group else module, function))
    cases = [value for value in vars(module).values() if isinstance(value, dict)]
    recorded = ["-".join(pair) for pair in getattr(module, "RECORDED", ())]
    assert case is None or case in recorded or any(case in each for each in cases)
