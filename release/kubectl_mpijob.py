#!/usr/bin/env python3
"""`kubectl mpijob` as krew installs it: runs the packages beside this file with a Python that they are for.

Every Python 3 has to understand this file, to say which one is needed.
"""

import os
import shutil
import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent / "packages"
ANY = "any"


def main() -> None:
    """Here where this Python will do, else in the newest one on the PATH that does."""
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    minors = sorted({path.name for path in PACKAGES.iterdir()} - {ANY}, key=lambda minor: int(minor.split(".")[1]))
    if running not in minors:
        for python in filter(None, (shutil.which(f"python{minor}") for minor in reversed(minors))):
            os.execv(python, [python, *sys.argv])  # noqa: S606 - no shell is wanted
        sys.exit(f"kubectl mpijob needs Python {' or '.join(minors)} on the PATH; python3 is {running}")
    sys.path[:0] = [str(PACKAGES / running), str(PACKAGES / ANY)]
    from webhook.cli import kubectl_plugin  # noqa: PLC0415 - it is there only now

    # By a link of this name kubectl asks how a line goes on.
    asked = Path(sys.argv[0]).name.startswith("kubectl_complete")
    kubectl_plugin.complete() if asked else kubectl_plugin.main()


if __name__ == "__main__":
    main()
