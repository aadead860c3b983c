"""Real MPI programs fail, and `mpijob-webhook why` recognises the causes in their logs."""

import os
from pathlib import Path

import pytest

from tests.support.installation.sshd import Sshd, find_sshd
from tests.support.mpi.programs import find
from tests.support.stuck.real_logs import SCENARIOS, record
from webhook.parts.why.causes import logs

pytestmark = [
    pytest.mark.skipif("MPIJOB_REAL_FAILURES" not in os.environ, reason="slow: run `make real-failures`"),
    pytest.mark.timeout(600),  # the first run downloads four releases of MPI
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: each pod is a Linux namespace of this machine"),
]

TRIES = 3


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Sshd:
    find("ssh", "openssh-client")
    return find_sshd(tmp_path_factory.mktemp("sshd"))


@pytest.mark.parametrize(
    ("name", "release"), [(name, release) for name, scenario in SCENARIOS.items() for release in scenario.releases]
)
def test_real_failure_is_recognised(name: str, release: str, sshd: Sshd, tmp_path: Path) -> None:
    """The test retries, because mpirun of Open MPI 5 sometimes exits before it has written its report."""
    causes = []
    while SCENARIOS[name].cause_of(release) not in causes and len(causes) < TRIES:
        (folder := tmp_path / str(len(causes))).mkdir()
        found = logs.find(record(name, release, sshd, folder))
        causes.append(found.id if found else "")
    assert causes[-1] == SCENARIOS[name].cause_of(release)
