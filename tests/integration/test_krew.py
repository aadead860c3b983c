"""`kubectl mpijob` as krew installs it: on the PATH by a link, with a Python alone, where there is no network."""

import hashlib
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release import krew
from tests.controlplane.build import ensure_built
from tests.support import krew_rules
from tests.support.jobs import GOOD, changed
from tests.support.paths import ROOT
from tests.support.samples import FULL
from webhook import __version__
from webhook.api import yaml

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not FULL, reason="packages are fetched: `make test-long`"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
MINOR = "{}.{}".format(*sys.version_info)
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
LOOPBACK = 'ip link set lo up; exec "$@"'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a user whose krew has taken the archive by the manifest."""
    made = tmp_path_factory.mktemp("krew") / "made"
    command = [sys.executable, "-m", "release.krew", made, "--platform", f"linux/{ARCH}", "--python", MINOR]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (manifest,) = yaml.load_all((made / "mpijob.yaml").read_text())
    assert krew_rules.faults("mpijob.yaml", manifest) == []
    (wanted,) = manifest["spec"]["platforms"]
    archive = made / wanted["uri"].rpartition("/")[2]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == wanted["sha256"]
    home = tmp_path_factory.mktemp("home")
    store = home / ".krew" / "store" / krew.NAME / manifest["spec"]["version"]
    with tarfile.open(archive) as files:
        files.extractall(store, filter="data")
    (home / ".krew" / "bin").mkdir()
    link = Path("..", store.relative_to(home / ".krew"), wanted["bin"])
    (home / ".krew" / "bin" / "kubectl-mpijob").symlink_to(link)
    (home / "good.yaml").write_text(yaml.dump(GOOD))
    (home / "bad.yaml").write_text(yaml.dump(changed({"Worker.replicas": 1})))
    return home


def kubectl(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    folders = [home / ".krew" / "bin", ensure_built() / "bin", Path(sys.base_prefix) / "bin", "/usr/bin", "/bin"]
    clean = ["env", "-i", f"PATH={':'.join(map(str, folders))}", f"HOME={home}"]
    command = ["unshare", "--net", *clean, "sh", "-euc", LOOPBACK, "sh", "kubectl", *words]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)


def test_jobs_are_checked(home: Path) -> None:
    assert kubectl(home, "mpijob", "--version").stdout.startswith(f"mpijob-webhook {__version__}\n")
    good, bad = (kubectl(home, "mpijob", "check", f"{name}.yaml") for name in ("good", "bad"))
    assert (good.returncode, bad.returncode) == (0, 1), good.stderr + bad.stderr
    assert "1 worker, at least 2 required" in bad.stdout


def test_kubectl_completes_it_by_the_link_that_the_manifest_tells_of(home: Path) -> None:
    (line,) = (line.strip() for line in krew.CAVEATS.splitlines() if "ln -s" in line)
    subprocess.run(["bash", "-c", line], env={"HOME": str(home)}, check=True)
    assert "check\t" in kubectl(home, "__complete", "mpijob", "che").stdout
