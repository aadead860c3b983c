"""A line for each run of some tests beside busy loops."""

from pathlib import Path

import pytest

from tests.support import under_load


def test_a_line_for_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    assert under_load.main(["--runs", "2", str(tmp_path)]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("run 1 of 2: exit code 1 after ")
    assert ": 1 failed, 1 passed in " in first
    assert first.endswith("test_it.py::test_bad")
    assert second.startswith("run 2 of 2: ")
    assert last.startswith("0 of 2 runs passed; their output is in ")


def test_all_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(): pass\n")
    assert under_load.main(["--runs", "1", str(tmp_path)]) == 0
    assert "run 1 of 1: passed after " in capsys.readouterr().out
