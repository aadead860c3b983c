"""The image that buildah builds from the Dockerfile, and the service in it."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.process import Program, free_port, responds
from tests.support import jobs
from tests.support.image import Image, build
from tests.support.paths import ROOT
from tests.support.rare import rare
from webhook import __version__

DOCKERFILE = ROOT / "Dockerfile"
LOCK = ROOT / "requirements" / "run.txt"
# Slow, because the build installs the packages twice, and Debian once per machine.
pytestmark = [rare, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid():
        pytest.skip("needs root, for debootstrap and chroot")
    folder = tmp_path_factory.mktemp("image")
    yield build(ROOT, folder)
    shutil.rmtree(folder)


def test_hadolint_reports_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_build_context_has_exactly_the_copied_files() -> None:
    context = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    assert {source.partition("/")[0] for sources in copied for source in sources.split()} == context


def test_build_tools_have_the_same_versions_as_in_development() -> None:
    def locked(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==.*(?:\n    .*)*", (ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert locked("build.txt") <= locked("dev.txt")
    assert any(requirement.startswith("hatchling==") for requirement in locked("build.txt"))


def test_base_image_has_no_default() -> None:
    text = DOCKERFILE.read_text()
    assert re.findall(r"^ARG BASE.*", text, re.MULTILINE) == ["ARG BASE"], (
        "a default would be a tag, which can be moved"
    )
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert "--require-hashes" in text


def test_image_runs_the_command_serve_as_a_numeric_user(image: Image) -> None:
    assert image.config["User"] == "65532:65532"
    assert image.config["Cmd"] == ["serve"]


def test_image_is_smaller_than_350_megabytes(image: Image) -> None:
    sizes = [path.lstat().st_size for path in image.root.rglob("*") if not path.is_symlink() and path.is_file()]
    assert sum(sizes) < 350 * 10**6


def test_image_has_exactly_the_locked_packages_and_the_service(image: Image) -> None:
    listing = (
        "import importlib.metadata as m; print(*(d.name + '==' + d.version for d in m.distributions()), sep='\\n')"
    )
    python = ["/opt/mpijob-webhook/bin/python", "-I", "-c", listing]
    found = {_name(line) for line in image.run(entrypoint=python).split()}
    locked = {_name(line) for line in re.findall(r"^[\w.-]+==[\w.]+", LOCK.read_text(), re.MULTILINE)}
    assert found - locked == {f"mpijob-webhook=={__version__}"}
    # Packages for other platforms are locked but not installed.
    conditional = re.findall(r"^([\w.-]+==[\w.]+) ; ", LOCK.read_text(), re.MULTILINE)
    assert locked - found <= set(map(_name, conditional))


def test_image_has_no_build_or_install_tools(image: Image) -> None:
    for path in ("src", "wheels", "opt/build"):
        assert not (image.root / path).exists()
    programs = {
        path.name
        for folder in ("usr/bin", "usr/local/bin", "opt/mpijob-webhook/bin")
        for path in _files(image.root / folder)
    }
    assert not {name for name in programs if re.match(r"pip|uv$|gcc|cc$|make$|git$|curl|wget|hatch", name)}
    modules = {
        path.name
        for path in image.root.rglob("*")
        if path.is_dir() and path.parent.name in {"site-packages", "dist-packages"}
    }
    assert not {"pip", "setuptools", "wheel", "hatchling"} & modules


def test_image_prints_its_version(image: Image) -> None:
    assert image.run("--version").startswith(f"mpijob-webhook {__version__}\n")


def test_image_checks_a_job(image: Image) -> None:
    job = (ROOT / "manifests" / "examples" / "openmpi-pi.yaml").read_text()
    assert "admitted" in image.run("check", "-", stdin=job)


def test_demo_runs_in_the_image(image: Image) -> None:
    """The image contains the examples, and the demo needs only a local address."""
    assert "What to try next:" in image.run("demo")


def test_image_serves_on_a_read_only_root_without_privileges_and_drains(image: Image, tmp_path: Path) -> None:
    listen, ops = (f"127.0.0.1:{free_port()}" for _ in range(2))
    flags = [f"--listen={listen}", f"--ops-listen={ops}", "--drain-seconds=0", "--ssh-keys-ready=0"]
    command = image.command(*image.config["Cmd"], *flags)
    program = Program(
        "image", [str(shutil.which(command[0])), *command[1:]], log=tmp_path / "log", env=dict(os.environ)
    )
    try:
        program.wait_ready(lambda: responds(f"http://{ops}/readyz"))
        served = _descendants(program.pid)[-1]
        status = Path(f"/proc/{served}/status").read_text()
        assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)

        bad = jobs.changed({"Worker.replicas": 1})
        request = urllib.request.Request(f"https://{listen}/validate-mpijob", data=jobs.body(bad))
        request.add_header("Content-Type", "application/json")
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(request, timeout=10, context=context) as reply:
            assert json.load(reply)["response"]["allowed"] is False

        os.kill(served, signal.SIGTERM)
        assert program._process.wait(20) == 0
    finally:
        program.stop()
    assert "Read-only" not in (tmp_path / "log").read_text()


def _name(requirement: str) -> str:
    name, version = requirement.split("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


def _files(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _descendants(pid: int) -> list[int]:
    """The children of a process and their descendants, the youngest last."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(found for child in children for found in _descendants(child))]
