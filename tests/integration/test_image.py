"""The image, without a container engine: the Dockerfile's own steps in a bare root, and the service started in it."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.process import Program, free_port, responds
from tests.support import jobs
from tests.support.image import bare_root
from tests.support.image.dockerfile import Stage, parse
from tests.support.paths import ROOT
from tests.support.samples import rare
from webhook import __version__

DOCKERFILE = ROOT / "Dockerfile"
LOCK = ROOT / "requirements" / "run.txt"
# Two package installations, and once per machine that of Debian itself.
pytestmark = [rare, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Image:
    """A root folder and what the Dockerfile says of its use."""

    root: Path
    stage: Stage

    def command(self, *arguments: str, entrypoint: list[str] | None = None, user: str = "") -> list[str]:
        """The command line that runs the image, its root read-only."""
        return bare_root.inside(
            self.root,
            [*(entrypoint or self.stage.command("ENTRYPOINT")), *arguments],
            user=user or self.stage.last("USER"),
            environment=self.stage.environment,
            read_only=True,
        )

    def run(self, *arguments: str, **options: Any) -> str:
        done = subprocess.run(
            self.command(*arguments, **options), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image as its Dockerfile makes it."""
    if os.geteuid():
        pytest.skip("needs root, for debootstrap and chroot")
    folder = tmp_path_factory.mktemp("image")
    stages = parse(DOCKERFILE, BASE="debian:trixie-slim")
    yield Image(bare_root.build(stages, ROOT, folder), stages[-1])
    shutil.rmtree(folder)


def test_the_linter_is_content() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_all_that_is_copied_is_let_through_and_exists() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source for stage in parse(DOCKERFILE) for origin, sources, _ in stage.copies if not origin for source in sources
    }
    assert {source.partition("/")[0] for source in copied} == let_through
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_what_builds_is_locked_as_it_is_for_development() -> None:
    def locked(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==.*(?:\n    .*)*", (ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert locked("build.txt") <= locked("dev.txt")
    assert any(requirement.startswith("hatchling==") for requirement in locked("build.txt"))


def test_the_base_must_be_named_and_the_user_is_a_number() -> None:
    text = DOCKERFILE.read_text()
    stages = parse(DOCKERFILE)
    assert re.findall(r"^ARG BASE.*", text, re.MULTILINE) == ["ARG BASE"], "a default is a tag, which can be moved"
    assert len(re.findall(r"^FROM \$\{BASE\}", text, re.MULTILINE)) == len(stages) == 2
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", stages[-1].last("USER"))
    assert "--require-hashes" in text
    assert stages[-1].command("CMD") == ["serve"]


def test_what_is_installed_is_what_is_locked_and_this(image: Image) -> None:
    listing = (
        "import importlib.metadata as m; print(*(d.name + '==' + d.version for d in m.distributions()), sep='\\n')"
    )
    python = ["/opt/mpijob-webhook/bin/python", "-I", "-c", listing]
    found = {_name(line) for line in image.run(entrypoint=python).split()}
    locked = {_name(line) for line in re.findall(r"^[\w.-]+==[\w.]+", LOCK.read_text(), re.MULTILINE)}
    assert found - locked == {f"mpijob-webhook=={__version__}"}
    # Everything but what is for other systems.
    conditional = re.findall(r"^([\w.-]+==[\w.]+) ; ", LOCK.read_text(), re.MULTILINE)
    assert locked - found <= set(map(_name, conditional))


def test_no_tool_is_left_to_build_or_install_with(image: Image) -> None:
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


def test_it_says_its_version(image: Image) -> None:
    assert image.run("--version").startswith(f"mpijob-webhook {__version__}\n")


def test_its_demonstration_runs(image: Image) -> None:
    """The examples are in it, and nothing but an address of the machine is needed."""
    assert "What to try next:" in image.run("demo")


def test_it_serves_from_a_read_only_root_without_rights_and_drains(image: Image, tmp_path: Path) -> None:
    listen, ops = (f"127.0.0.1:{free_port()}" for _ in range(2))
    flags = [f"--listen={listen}", f"--ops-listen={ops}", "--drain-seconds=0", "--ssh-keys-ready=0"]
    command = image.command(*image.stage.command("CMD"), *flags)
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
    """In the spelling that all can be compared in."""
    name, version = requirement.split("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


def _files(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on; the youngest last."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(found for child in children for found in _descendants(child))]
