"""Files of other projects' Go modules, which are downloaded by version and checksum."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.controlplane.recipe import go_minimum
from tests.controlplane.toolchain import find_go, go_environment


def module(name: str, version: str, checksum: str = "") -> Path:
    """The folder of a Go module. The test is skipped if the module cannot be downloaded.

    Go compares the module's checksum with Go's database. This function also compares the module's checksum with
    `checksum`, if that is not empty.
    """
    go = find_go(go_minimum(), say=print)
    command = [str(go), "mod", "download", "-json", f"{name}@{version}"]
    done = subprocess.run(command, env=go_environment(), capture_output=True, text=True, check=False)
    download = json.loads(done.stdout or "{}")
    if done.returncode:
        pytest.skip(f"{name} cannot be downloaded: {download.get('Error') or done.stderr}")
    assert checksum in ("", download["Sum"])
    return Path(download["Dir"])
