"""The files with which a browser runs this project's modules: Pyodide, its locked wheels, and the modules."""

import hashlib
import importlib.metadata
import io
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from tests.controlplane.build import cache_root
from tests.support.paths import ROOT
from tools.page.build import dependency

LOCK: Final = ROOT / "requirements" / "run.txt"
CORE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# The packages of the lock file that verdicts import.
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
    """Write all files into a folder. Returns the names of the archives to unpack."""
    for name in CORE:
        path = dependency("pyodide") / name
        if path.suffix == ".mjs":
            # Some web servers have no JavaScript type for .mjs, and browsers run only JavaScript types.
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
    """The folder of the locked wheels, which are downloaded once and verified by hash."""
    entries = re.findall(r"^(?:\S+==\S.*\n)(?: .*\n)*", LOCK.read_text(), re.MULTILINE)
    wanted = "".join(entry for entry in entries if entry.partition("==")[0] in PACKAGES)
    folder = cache_root().with_name("wheels") / hashlib.sha256((wanted + str(TARGET)).encode()).hexdigest()[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as name:
            lock = Path(name, "lock.txt")
            lock.write_text(wanted)
            fetched = Path(name, "wheels")
            pip: list[str | Path] = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            pip += [
                "--disable-pip-version-check",
                "--require-hashes",
                "--only-binary=:all:",
                *TARGET,
                "--requirement",
                lock,
                "--dest",
                fetched,
            ]
            subprocess.run(pip, check=True)
            fetched.rename(folder)
    return folder


def _ours() -> bytes:
    """This project's modules, and the YAML parser without libyaml, which has no wheel for Pyodide."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        parser = Path(yaml.__file__).parent
        files = [(path, ROOT) for path in sorted((ROOT / "webhook").rglob("*")) if path.suffix in {".py", ".json"}]
        files += [(path, parser.parent) for path in sorted(parser.glob("*.py"))]
        for path, top in files:
            packed.writestr(zipfile.ZipInfo(str(path.relative_to(top)), _DAY), path.read_bytes())
        packed.writestr(zipfile.ZipInfo("yaml/LICENSE", _DAY), _licence("pyyaml"))
    return archive.getvalue()


def _licence(package: str) -> str:
    found = importlib.metadata.files(package) or []
    return next(path.read_text() for path in found if path.name.startswith("LICENSE"))
