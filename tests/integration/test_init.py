"""The launchers of the jobs that `init` writes start the ranks with the real MPI programs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.mpi.releases import installed
from tests.support.rare import rare
from webhook.api import yaml
from webhook.cli.main import main

pytestmark = [rare, pytest.mark.timeout(300)]
IMAGE = "registry.example.com/ml/train:1.4"
# The test machine has few slots, and the tests run as root.
HERE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "FI_PROVIDER": "tcp",
}


# PyTorch is several gigabytes, so its torchrun is tested only if it is installed.
STARTED = {"openmpi": "openmpi-5", "intel": "intel", "mpich": "mpich", "horovod": "openmpi-4", "deepspeed": "openmpi-4"}
STARTED |= {"pytorch": "openmpi-4"} if shutil.which("torchrun") else {}


@pytest.mark.parametrize("program", ["train.py", "python train.py"])
@pytest.mark.parametrize("framework", STARTED)
def test_launcher_of_the_written_job_starts_the_ranks(framework: str, program: str, tmp_path: Path) -> None:
    flags = ["--framework", framework, "--gpus", "1", "--image", IMAGE]
    done = CliRunner().invoke(main, ["init", *flags, "--", *program.split()], catch_exceptions=False)
    (document,) = yaml.load_all(done.stdout)
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    (tmp_path / "train.py").write_text("print('a rank', flush=True)")
    environment = installed(STARTED[framework]).environment
    started = subprocess.run(
        [*launcher.get("command", ()), *launcher["args"]],
        cwd=tmp_path,
        env=environment
        | HERE
        | {"HOME": str(tmp_path), "PATH": f"{environment['PATH']}:{Path(sys.executable).parent}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (started.returncode, started.stdout.splitlines()) == (0, ["a rank"] * 2), started.stderr
