"""What krew gets: the manifest, the archive, and the script that looks for a Python."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release import krew
from tests.support import krew_rules
from tests.support.jobs import changed
from tests.support.paths import ROOT
from webhook import __version__

SITE = "https://downloads.example.com/plugin"
MANIFEST = krew.manifest(SITE, dict.fromkeys(krew.PLATFORMS, "0" * 64), krew.MINORS)
OWN = "{}.{}".format(*sys.version_info)


def test_krew_takes_the_manifest() -> None:
    assert krew_rules.faults("mpijob.yaml", MANIFEST) == []
    assert MANIFEST["spec"]["version"] == f"v{__version__}"
    uris = [platform["uri"] for platform in MANIFEST["spec"]["platforms"]]
    assert f"{SITE}/kubectl-mpijob-v{__version__}-linux-amd64.tar.gz" in uris


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Plugins"),
        ("metadata.name", "mpi job"),
        ("spec.version", __version__),
        ("spec.shortDescription", "two\nlines"),
        ("spec.platforms", []),
        ("spec.platforms.0.sha256", "0"),
        ("spec.platforms.0.bin", ""),
        ("spec.platforms.0.files", []),
        ("spec.platforms.0.selector", {"matchLabels": {"cpu": "amd64"}}),
        ("spec.platforms.0.selector", {"matchLabels": {"os": "plan9", "arch": "amd64"}}),
        ("spec.platforms.0.selector", MANIFEST["spec"]["platforms"][1]["selector"]),
        ("spec.caveats", "many words " * 8),
    ],
)
def test_the_rules_of_krew_are_asked(path: str, value: object) -> None:
    assert len(krew_rules.faults("mpijob.yaml", changed({path: value}, MANIFEST))) == 1


def test_every_python_of_the_project_is_named() -> None:
    assert f'requires-python = ">={krew.MINORS[0]}"' in (ROOT / "pyproject.toml").read_text()
    assert "Python 3.11 or 3.12 or 3.13 or 3.14 on the PATH" in MANIFEST["spec"]["caveats"]


def wheel(folder: Path, name: str, *files: str) -> Path:
    with zipfile.ZipFile(folder / name, "w") as made:
        for file in files:
            made.writestr(file, "x")
    return folder / name


def test_an_archive_has_plain_files_and_is_the_same_each_time(tmp_path: Path) -> None:
    wheels = [
        ("any", wheel(tmp_path, "a-1-py3-none-any.whl", "a/", "a/x.py", "a-1.dist-info/METADATA")),
        ("3.11", wheel(tmp_path, "b-1-cp311-cp311-x.whl", "b.so")),
    ]
    data = krew.archive(wheels)
    assert data == krew.archive(wheels)
    with tarfile.open(fileobj=io.BytesIO(data)) as found:
        assert all(each.isreg() for each in found), "krew unpacks nothing else"
        modes = {each.name: each.mode for each in found}
    own = {"kubectl-mpijob": 0o755, "LICENSE": 0o644}
    theirs = ("any/a/x.py", "any/a-1.dist-info/METADATA", "3.11/b.so")
    assert modes == own | {f"packages/{name}": 0o644 for name in theirs}


def test_a_wheel_that_is_more_than_files_is_refused(tmp_path: Path) -> None:
    scripts = wheel(tmp_path, "c-1-py3-none-any.whl", "c-1.data/scripts/c")
    with pytest.raises(SystemExit, match=r"c-1.data/scripts/c, which does not go beside the others"):
        krew.archive([("any", scripts)])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """As krew unpacks it, with a program that says by what it was called."""
    store = tmp_path / "store"
    program = store / "packages" / "any" / "webhook" / "cli" / "kubectl_plugin.py"
    program.parent.mkdir(parents=True)
    program.write_text(
        "import sys\n"
        "def main(): print('main', *sys.argv[1:])\n"
        "def complete(): print('complete', *sys.argv[1:])\n"
    )  # fmt: skip
    script = store / "kubectl-mpijob"
    script.write_bytes((ROOT / "release" / "kubectl_mpijob.py").read_bytes())
    script.chmod(0o755)
    (tmp_path / "bin").mkdir()
    return store


def said(store: Path, *words: str, name: str = "kubectl-mpijob") -> subprocess.CompletedProcess[str]:
    """By the link that krew makes, with this Python as `python3` and nothing else on the PATH."""
    path = store.parent / "bin"
    (path / name).symlink_to("../store/kubectl-mpijob")
    (path / "python3").symlink_to(sys.executable)
    env = {"PATH": f"{path}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([path / name, *words], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "called"), [("kubectl-mpijob", "main"), ("kubectl_complete-mpijob", "complete")])
def test_it_runs_by_this_python(store: Path, name: str, called: str) -> None:
    (store / "packages" / OWN).mkdir()
    assert said(store, "check", "a b", name=name).stdout == f"{called} check a b\n"


def test_another_python_is_found_the_newest_first(store: Path) -> None:
    for minor in ("3.7", "3.99", "3.100"):
        (store / "packages" / minor).mkdir()
        other = store.parent / "bin" / f"python{minor}"
        other.write_text(f'#!/bin/sh\necho {minor} "${{1##*/}}" "$2"\n')
        other.chmod(0o755)
    assert said(store, "a b").stdout == "3.100 kubectl-mpijob a b\n"


def test_no_python_will_do(store: Path) -> None:
    for minor in ("3.98", "3.99"):
        (store / "packages" / minor).mkdir()
    done = said(store)
    assert done.returncode == 1
    assert done.stderr == f"kubectl mpijob needs Python 3.98 or 3.99 on the PATH; python3 is {OWN}\n"
