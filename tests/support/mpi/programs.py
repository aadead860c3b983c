"""Finds programs on this machine. A missing program is installed with apt-get, which only root may do."""

import os
import shutil
import subprocess

INSTALL = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"]


def find(name: str, package: str = "util-linux") -> str:
    """The path of the program `name`. A missing program is installed from the Debian package `package`."""
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if path := shutil.which(name, path=search):
        return path
    problem = "there is no apt-get to install it"
    if shutil.which("apt-get"):
        subprocess.run(["apt-get", "--quiet", "update"], capture_output=True, timeout=300, check=False)
        done = subprocess.run([*INSTALL, package], capture_output=True, text=True, timeout=300, check=False)
        problem = done.stderr.strip()
    if path := shutil.which(name, path=search):
        return path
    raise RuntimeError(f"there is no program {name!r}: install the package {package} ({problem})")
