"""The cache of built programs: its key, its lock, and that it never holds a half build."""

import io
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.controlplane import recipe
from tests.controlplane.build import cache_root, ensure_built
from tests.controlplane.process import ControlPlaneError, wait_for
from tests.controlplane.progress import Progress
from tests.controlplane.recipe import CONTROL_PLANE, HERE, TARGETS, cache_key, go_minimum, linker_flags, sources
from tests.support.fake_go import FakeGo

PACKAGES = [target.package for target in TARGETS]
COMMAND = [sys.executable, "-m", "tests.controlplane.build"]


def build(*, force: bool = False) -> tuple[Path, str]:
    """The folder, and what was shown."""
    shown = io.StringIO()
    return ensure_built(force=force, progress=Progress(shown)), shown.getvalue()


def test_first_call_builds_and_second_finds_it(go: FakeGo) -> None:
    folder, shown = build()
    assert go.builds() == PACKAGES
    assert sorted(path.name for path in (folder / "bin").iterdir()) == sorted(target.name for target in TARGETS)
    assert (folder / "mpi-operator" / "crd.yaml").read_text() == "name: crd\n"
    assert (folder / "examples" / "pi.yaml").read_text() == "name: pi\n"
    assert (folder / "kwok-stages.yaml").read_text() == "name: node-initialize\n\n---\nname: pod-ready\n"
    assert (folder / "kueue/config/default/kustomization.yaml").is_file()
    assert (folder / "kueue/config/components/crd/kustomization.yaml").is_file()
    assert "once: it is kept in" in shown
    assert f"[1/{len(TARGETS)}] controlplane (etcd and Kubernetes) ..." in shown

    calls = go.calls
    assert build() == (folder, "")
    assert go.calls == calls
    assert sorted(path.name for path in cache_root().iterdir()) == sorted([folder.name, "lock"])


def test_force_builds_again(go: FakeGo) -> None:
    folder, _ = build()
    (folder / "stale").touch()
    assert build(force=True)[0] == folder
    assert go.builds() == PACKAGES * 2
    assert not (folder / "stale").exists()


def test_failure_shows_what_go_said_and_leaves_nothing_to_use(go: FakeGo) -> None:
    (go.home / "broken").write_text("./mpi-operator")
    with pytest.raises(ControlPlaneError) as error:
        build()
    text = str(error.value)
    assert text.startswith(
        "Building mpi-operator failed. The end of what go said:\n    main.go:7:2: undefined: nonsense"
    )
    assert "run this again" in text
    assert "k8s.io/api/core/v1" not in text

    (go.home / "broken").write_text("")
    assert build()[0].is_dir()


def test_missing_upstream_file_is_named(go: FakeGo) -> None:
    (go.home / "modules/github.com/kubeflow/mpi-operator/examples/v2beta1/pi/pi.yaml").unlink()
    with pytest.raises(ControlPlaneError, match=r"none of examples/v2beta1/\*/\*.yaml"):
        build()


def test_killed_build_leaves_no_half_cache(go: FakeGo) -> None:
    (go.home / "hold").touch()
    with subprocess.Popen(COMMAND, stderr=subprocess.DEVNULL) as first:
        wait_for("the build to begin", go.builds)
        first.kill()
    assert [path for path in cache_root().iterdir() if path.suffix == ""] == [cache_root() / "lock"]
    (cache_root() / f"{cache_key()}.partial" / "bin" / "junk").touch()
    (go.home / "hold").unlink()

    folder, _ = build()  # the lock went with its holder
    assert not (folder / "bin" / "junk").exists()


def test_interrupted_build_ends_go_and_says_so(go: FakeGo) -> None:
    (go.home / "hold").touch()
    with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True) as first:
        wait_for("the build to begin", go.builds)
        first.send_signal(signal.SIGINT)
        _, shown = first.communicate(timeout=30)
    assert first.returncode == 1
    assert shown.endswith("Stopped. Nothing half-built stays; what is compiled is kept for the next time.\n")
    assert "Traceback" not in shown
    pid = int((go.home / "pid").read_text())
    wait_for("go to end", lambda: not Path(f"/proc/{pid}").exists())


def test_two_at_once_build_once(go: FakeGo) -> None:
    (go.home / "hold").touch()
    with subprocess.Popen(COMMAND, stderr=subprocess.DEVNULL) as first:
        wait_for("the first to build", go.builds)
        with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr
            waits = second.stderr.readline()
            assert waits == f"Another build is running (process {first.pid}): waiting for it.\n"
            (go.home / "hold").unlink()
            _, rest = second.communicate(timeout=30)
        assert first.wait(30) == 0
    assert second.returncode == 0
    assert rest == f"The test control plane is ready: {cache_root() / cache_key()}\n"
    assert go.builds() == PACKAGES


def test_builds_that_nobody_uses_are_removed(go: FakeGo) -> None:
    now = time.time()
    for name, days in {"unused": 15, "recent": 13}.items():
        (cache_root() / name).mkdir(parents=True)
        os.utime(cache_root() / name, (now, now - days * 24 * 3600))
    folder, _ = build()
    assert {path.name for path in cache_root().iterdir() if path.is_dir()} == {"recent", folder.name}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the sources, to change."""
    for path in sources():
        target = tmp_path / path.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


@pytest.mark.parametrize("name", ["main.go", "go.mod", "go.sum", "kwok/go.mod", "kueue/go.sum", "mpi-operator/main.go"])
def test_key_follows_every_source(copy: Path, name: str) -> None:
    assert cache_key(replace(CONTROL_PLANE, root=copy)) == cache_key()
    (copy / name).write_text((copy / name).read_text() + "\n")
    assert cache_key(replace(CONTROL_PLANE, root=copy)) != cache_key()


def test_key_follows_names_flags_and_platform(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {cache_key(replace(CONTROL_PLANE, root=copy))}
    (copy / "README").write_text("of no concern")
    keys.add(cache_key(replace(CONTROL_PLANE, root=copy)))
    assert len(keys) == 1
    (copy / "main.go").rename(copy / "other.go")
    keys.add(cache_key(replace(CONTROL_PLANE, root=copy)))
    monkeypatch.setattr(recipe, "FLAGS", ("-race",))
    keys.add(cache_key(replace(CONTROL_PLANE, root=copy)))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    keys.add(cache_key(replace(CONTROL_PLANE, root=copy)))
    assert len(keys) == 4


def test_versions_come_from_go_mod(copy: Path) -> None:
    (copy / "go.mod").write_text("module m\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.0-rc.1\n)\n")
    flags = linker_flags(TARGETS[0], copy)
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.0-rc.1 " in flags
    assert "version.gitMajor=1 " in flags
    assert "version.gitMinor=36 " in flags
    assert "component-base" not in linker_flags(TARGETS[-1], copy)
    (copy / "kwok" / "go.mod").write_text("module k\n\ngo 1.31.0\n")
    assert go_minimum(copy) == (1, 31)
    (copy / "go.mod").write_text("module m\n")
    with pytest.raises(ValueError, match=r"no version of k8s.io/kubernetes"):
        linker_flags(TARGETS[0], copy)
