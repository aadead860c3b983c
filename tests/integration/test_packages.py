"""The sdist and the wheel have the right contents, and the installed commands work in any working directory."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.jobs import GOOD, changed
from tests.support.paths import ROOT
from tests.support.rare import rare
from webhook import __version__
from webhook.api import yaml

pytestmark = [
    pytest.mark.timeout(900),
    rare,
]
PAGE = "webhook/parts/playground/page/"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Packages:
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    folder = tmp_path_factory.mktemp("packages")
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return Packages(sdist, wheel)


@pytest.fixture(scope="module")
def installed(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the installed commands, in an environment with only the locked runtime dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    locked = environment.this(Progress())
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    python = str(folder / "bin" / "python")
    beside = run([str(locked), "-c", where], folder).strip()
    Path(run([python, "-c", where], folder).strip(), "locked.pth").write_text(beside + "\n")
    run([*PIP, "--python", python, "install", "--no-index", "--no-compile", str(packages.wheel)], folder)
    return folder / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder whose modules are named like modules that the service imports. Importing them fails."""
    for name in ("webhook", "certs", "yaml", "manifests"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "good.yaml").write_text(yaml.dump(GOOD))
    (tmp_path / "bad.yaml").write_text(yaml.dump(changed({"Worker.replicas": 1})))
    return tmp_path


def test_packages_have_the_version_of_the_code(packages: Packages, installed: Path, elsewhere: Path) -> None:
    assert packages.sdist.name == f"mpijob_webhook-{__version__}.tar.gz"
    assert packages.wheel.name == f"mpijob_webhook-{__version__}-py3-none-any.whl"
    for program in ("mpijob-webhook", "kubectl-mpijob"):
        assert run([str(installed / program), "--version"], elsewhere).splitlines()[0].split()[-1] == __version__
    assert __version__ not in (ROOT / "pyproject.toml").read_text()


def test_wheel_from_the_sdist_equals_the_wheel_from_the_checkout(packages: Packages, tmp_path: Path) -> None:
    with tarfile.open(packages.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)], tmp_path)
    assert contents(tmp_path / packages.wheel.name) == contents(packages.wheel)


def contents(wheel: Path) -> dict[str, int]:
    """The checksum of each file except RECORD, which depends on the order in the archive."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist() if not each.filename.endswith("/RECORD")}


def test_sdist_has_exactly_the_tracked_files(packages: Packages) -> None:
    """The sdist has no leftovers of tests and tools. It has all files that the tests need."""
    with tarfile.open(packages.sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    made = {"PKG-INFO", "webhook/build.json", *(name for name in found if name.startswith(PAGE))}
    kept = set(run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).splitlines())
    kept = {name for name in kept if (ROOT / name).exists()}
    assert sorted(found - made - kept) == []
    assert sorted(kept - found) == []


def test_page_is_in_both_packages_if_it_is_built(packages: Packages) -> None:
    is_built = {f"{PAGE}{path.name}" for path in (ROOT / PAGE).glob("*")}
    with tarfile.open(packages.sdist) as archive:
        assert {name.partition("/")[2] for name in archive.getnames() if f"/{PAGE}" in name} == is_built
    with zipfile.ZipFile(packages.wheel) as archive:
        assert {name for name in archive.namelist() if name.startswith(PAGE)} == is_built


def test_demo_runs_in_any_folder(installed: Path, elsewhere: Path) -> None:
    assert "What to try next:" in run([str(installed / "mpijob-webhook"), "demo"], elsewhere)


@pytest.mark.parametrize("program", ["mpijob-webhook", "kubectl-mpijob"])
def test_check_runs_in_any_folder(program: str, installed: Path, elsewhere: Path) -> None:
    assert "good.yaml" in run([str(installed / program), "check", "good.yaml"], elsewhere)
    assert "rejected" in run([str(installed / program), "check", "bad.yaml"], elsewhere, code=1)


def test_completion_of_the_kubectl_plugin_is_installed(installed: Path, elsewhere: Path) -> None:
    assert run([str(installed / "kubectl_complete-mpijob"), "che"], elsewhere).startswith("check\t")


def test_modules_are_imported_from_the_installation(installed: Path, elsewhere: Path) -> None:
    python = str(installed / "python")
    where = run([python, "-I", "-c", "import webhook; print(webhook.__file__)"], elsewhere)
    assert Path(where).is_relative_to(installed.parent)


def run(command: list[str], folder: Path, *, code: int = 0) -> str:
    """Run the command without environment variables that point to the checkout. Returns its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    path = os.pathsep.join(
        entry for entry in os.environ["PATH"].split(os.pathsep) if entry != sysconfig.get_path("scripts")
    )
    done = subprocess.run(
        command, cwd=folder, env={**kept, "PATH": path}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
