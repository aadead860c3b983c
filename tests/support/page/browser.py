"""A real headless Chromium, controlled by Playwright. If Chromium is not installed, Debian's packages are unpacked."""

import fcntl
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import debian
from tests.support.paths import ROOT

INSTALLED = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGE = "chromium-headless-shell"


@contextmanager
def browser() -> Iterator[Any]:
    _install_playwright()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - just installed

    installed = next(filter(None, map(shutil.which, INSTALLED)), None)
    path = Path(installed) if installed else _unpacked()
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work in containers. The tests do not need it: they open only this project's pages.
        started = playwright.chromium.launch(
            executable_path=path, env=_environment(path), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield started
        finally:
            started.close()


def _unpacked() -> Path:
    """The unpacked binary. The script in `bin` would work only at its installed path."""
    return debian.program(PACKAGE, package=PACKAGE, dependencies=True).parents[1] / "lib" / "chromium" / PACKAGE


def _environment(path: Path) -> dict[str, str]:
    environment = debian.environment(path)
    if root := debian.unpacked(path):
        environment["XDG_DATA_HOME"] = str(root / "usr" / "share")  # fonts
        if not Path("/etc/fonts").exists():
            environment["FONTCONFIG_PATH"] = str(root / "etc" / "fonts")
    return environment


def _install_playwright() -> None:
    """Install Playwright into the environment of the tests. Other test processes wait."""
    with Path(sys.prefix, "playwright.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        importlib.invalidate_caches()
        if not importlib.util.find_spec("playwright"):
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            requirements = ROOT / "requirements" / "browser.txt"
            subprocess.run([*pip, "--require-hashes", "--requirement", requirements], check=True)
            importlib.invalidate_caches()
