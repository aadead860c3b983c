"""Files for running this project in a browser: Pyodide, locked wheels, and this project's modules."""

import hashlib
import importlib.metadata
import io
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from tests.controlplane.build import cache_root
from tests.support.paths import ROOT
from tools.page.build import dependency
from tools.release.building import LOCK, PIP

CORE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# Packages of the lock file. Verdicts in the browser import no other packages.
PACKAGES: Final = (
    "annotated-types", "click", "msgspec", "pydantic", "pydantic-core", "typing-extensions", "typing-inspection",
)  # fmt: skip
# The platform tags of this Pyodide's Python: https://peps.python.org/pep-0783/
TARGET: Final = (
    "--platform", "pyemscripten_2026_0_wasm32", "--python-version", "314", "--implementation", "cp", "--abi", "cp314",
)  # fmt: skip
OURS: Final = "ours.zip"
# A fixed time, so that the archives are reproducible.
_DAY: Final = (1980, 1, 1, 0, 0, 0)


def write(folder: Path) -> list[str]:
    """Write all files into a folder. Returns the names of the archives that the page unpacks."""
    for name in CORE:
        path = dependency("pyodide") / name
        if path.suffix == ".mjs":
            # Some web servers send no JavaScript content type for .mjs files, so browsers would not run them.
            renamed = path.read_text(encoding="utf-8").replace("pyodide.asm.mjs", "pyodide.asm.js")
            (folder / name).with_suffix(".js").write_text(renamed, encoding="utf-8")
        else:
            shutil.copy(path, folder / name)
    wheels = sorted(_wheels().glob("*.whl"))
    for wheel in wheels:
        shutil.copy(wheel, folder / wheel.name)
    (folder / OURS).write_bytes(_ours())
    return [*(wheel.name for wheel in wheels), OURS]


def _wheels() -> Path:
    entries = re.findall(r"^(?:\S+==\S.*\n)(?: .*\n)*", LOCK.read_text(), re.MULTILINE)
    locked = "".join(entry for entry in entries if entry.partition("==")[0] in PACKAGES)
    folder = cache_root().with_name("wheels") / hashlib.sha256((locked + str(TARGET)).encode()).hexdigest()[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as name:
            lock = Path(name, "lock.txt")
            lock.write_text(locked)
            wheels = Path(name, "wheels")
            strict = ("--require-hashes", "--only-binary=:all:", *TARGET)
            download = (*PIP, "download", "--no-deps", *strict, "--requirement", lock, "--dest", wheels)
            subprocess.run(download, check=True)
            wheels.rename(folder)
    return folder


def _ours() -> bytes:
    """This project's modules, and the pure-Python YAML parser, because PyYAML has no wheel for Pyodide."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        parser = Path(yaml.__file__).parent
        files = [(path, ROOT) for path in sorted((ROOT / "webhook").rglob("*")) if path.suffix in {".py", ".json"}]
        files += [(path, parser.parent) for path in sorted(parser.glob("*.py"))]
        for path, top in files:
            packed.writestr(zipfile.ZipInfo(str(path.relative_to(top)), _DAY), path.read_bytes())
        paths = importlib.metadata.files("pyyaml") or []
        licence = next(path.read_text() for path in paths if path.name.startswith("LICENSE"))
        packed.writestr(zipfile.ZipInfo("yaml/LICENSE", _DAY), licence)
    return archive.getvalue()
