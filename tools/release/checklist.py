"""Checks whether this checkout can be released as the version in webhook/__init__.py: `make release-check`."""
# ruff: noqa: T201 - a command prints

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools import manifests, reference
from webhook import PROGRAM, __version__
from webhook.api import yaml

ROOT: Final = Path(__file__).parents[2]
Check = Callable[[Path, str], str]
"""A function of a checkout and a version. It returns the open task, or an empty text."""


def committed(root: Path, version: str) -> str:
    del version
    changes = _run(root, "git", "status", "--porcelain").splitlines()
    return f"commit or remove what `git status` lists, {len(changes)} in all: {changes[0].strip()}" if changes else ""


def untagged(root: Path, version: str) -> str:
    return f"v{version} is a tag already: raise the version" if _run(root, "git", "tag", "-l", f"v{version}") else ""


def described(root: Path, version: str) -> str:
    titles = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    newest = titles[0] if titles else "nothing"
    title = rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d"
    return (
        "" if re.fullmatch(title, newest) else f"it begins with '{newest}': rename it to '{version} - YEAR-MONTH-DAY'"
    )


def deployed(root: Path, version: str) -> str:
    (base,) = yaml.load_all((root / "manifests/base/kustomization.yaml").read_text(encoding="utf-8"))
    versions = {
        "images[0].newTag": str(base["images"][0]["newTag"]),
        "labels[0].pairs": str(base["labels"][0]["pairs"]["app.kubernetes.io/version"]),
    }
    wrong = [f"{field} is {value}" for field, value in versions.items() if value != version]
    return f"in manifests/base/kustomization.yaml {', '.join(wrong)}: write {version}" if wrong else ""


def generated(root: Path, version: str) -> str:
    del version
    for maker, folder, files in (
        ("make docs", root / "docs", reference.pages()),
        ("make manifests", root / "manifests", manifests.files()),
    ):
        old = [name for name, text in files.items() if not _is(folder / name, text)]
        if old:
            return f"{old[0]} is not what the code says: run `{maker}`"
    return ""


def paged(root: Path, version: str) -> str:
    """The wheel needs the page of `playground`."""
    del version
    page = root / "webhook/parts/playground/page/index.html"
    return "" if page.is_file() else "`mpijob-webhook playground` would have nothing to show: run `make page`"


def built(root: Path, version: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"it does not build: {done.stderr.strip().splitlines()[-1]}"
        names = [path.name for path in Path(folder).iterdir()]
    stem = f"{PROGRAM.replace('-', '_')}-{version}-"
    return "" if any(name.startswith(stem) for name in names) else f"it is {names[0]}, not {stem}*.whl"


CHECKS: Final[Mapping[str, Check]] = {
    "work tree": committed,
    "tag": untagged,
    "CHANGELOG.md": described,
    "manifests": deployed,
    "generated files": generated,
    "page": paged,
    "wheel": built,
}


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _run(root: Path, *command: str) -> str:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def main(root: Path = ROOT, version: str = __version__) -> int:
    faults = 0
    for name, check in CHECKS.items():
        fault = check(root, version)
        faults += bool(fault)
        print(f"{name}: {fault or 'ok'}", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
