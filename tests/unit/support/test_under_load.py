"""A line for each run of some tests beside busy loops."""

from pathlib import Path

import pytest

from tests.support import under_load

QUIET = ("--loops", "0")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (made := tmp_path / "logs").mkdir()
    monkeypatch.setattr(under_load, "mkdtemp", lambda prefix: str(made))
    return made


def test_a_line_for_each_run(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where they go on beside each other; what failed can be read."""
    (tmp_path / "test_it.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    assert under_load.main(["--runs", "2", "--at-once", "2", *QUIET, str(tmp_path)]) == 1
    *runs, last = capsys.readouterr().out.splitlines()
    for number, line in enumerate(sorted(runs), start=1):
        assert line.startswith(f"run {number} of 2: exit code 1 after ")
        assert ": 1 failed, 1 passed in " in line
        assert line.endswith("test_it.py::test_bad")
        assert "def test_bad" in (folder / f"{number}.log").read_text()
    assert last == f"0 of 2 runs passed; what those printed and logged that did not is in {folder}"


def test_all_passed(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(tmp_path): pass\n")
    assert under_load.main(["--runs", "1", *QUIET, str(tmp_path)]) == 0
    assert "run 1 of 1: passed after " in capsys.readouterr().out
    assert list(folder.iterdir()) == []


def test_the_machine_is_kept_busy() -> None:
    with under_load.busy(2) as loops:
        assert [loop.poll() for loop in loops] == [None, None]
    assert all(loop.returncode for loop in loops)
