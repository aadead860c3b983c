"""MPI releases. Each file requirements/mpi-NAME.txt locks a release, which is installed once into a separate folder.

Debian's Open MPI, which many images have, is an additional release.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import cache_root
from tests.support.paths import ROOT

DEBIAN = "debian"
DEBIANS_MPIRUN = "mpirun.openmpi"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Release:
    folder: Path
    libraries: str = "lib"
    """A pattern for the folder of the libraries."""

    @property
    def library(self) -> Path:
        return min(self.folder.glob(f"{self.libraries}/libmpi.so.*"))  # in some releases, libmpi.so is only for linkers

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of an image with this release. MPI needs them to find its files."""
        if self.folder == Path("/usr"):
            return {"PATH": PATH}
        return {
            "PATH": f"{self.folder / 'bin'}:{PATH}",
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "OPAL_PREFIX": str(self.folder),
            "PMIX_PREFIX": str(self.folder),
            "I_MPI_ROOT": str(self.folder),
            "FI_PROVIDER_PATH": str(self.folder / "lib"),
        }


def installed(name: str) -> Release:
    """The release in requirements/mpi-`name`.txt, from the cache or the package index, or Debian's release."""
    if name == DEBIAN:
        return Release(Path("/usr"), "lib/*-linux-gnu")
    lock = ROOT / "requirements" / f"mpi-{name}.txt"
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    folder = cache_root().parent / "mpi" / f"{name}-{key}"
    complete = folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)  # remains of an interrupted installation
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command = [*pip, "--ignore-installed", "--require-hashes", "--prefix", folder, "-r", lock]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                raise RuntimeError(f"pip could not install {lock.name}:\n{done.stderr.strip()}")
            complete.touch()
    return Release(folder)
