import pytest

from webhook.api.pod import Container
from webhook.api.programs import started_by


@pytest.mark.parametrize(
    ("script", "programs"),
    [
        ("NP=$(wc -l < /etc/mpi/hostfile)\nmpirun -np $((NP * 8)) x 2>&1 | tee log", {"mpirun", "tee", "wc"}),
        ("set -e; cd /x && A=b exec /opt/mpi/bin/mpirun x", {"mpirun"}),
        ("for s in a b; do mpirun -np 2 x; done; host w", {"host", "mpirun"}),
        ("while read -r host _; do\n until ssh $host true; do sleep 3; done\ndone < f", {"ssh", "sleep"}),
        ("mpirun -np 2 \\\n -x A \\\n python 'a; b' # c; d", {"mpirun"}),
        ("mpirun -np `nproc` x", {"mpirun", "nproc"}),
        ("echo a", {"bash"}),
        ("export A=b\nmpirun x\n", {"mpirun"}),
        ("  pip install x\n\n  sleep infinity\n", {"pip", "sleep"}),
        ("# nothing\n", {"bash"}),
        ("source /x; mpirun y", None),
        ("$MPI x", None),
        ('"$MPI" x', None),
        ("./run.sh", None),
        ("bash x", None),
        ("cat > a <<E\nE\n mpirun x", None),
    ],
)
def test_programs_of_a_script(script: str, programs: set[str] | None) -> None:
    assert started_by(Container(command=["bash", "-c"], args=[script])) == programs


@pytest.mark.parametrize(
    ("container", "programs"),
    [
        (Container(command=["/usr/bin/python3"], args=["t.py"]), {"python3"}),
        (Container(args=["python3", "t.py"]), None),
        (Container(), None),
        (Container(command=["bash", "x"]), None),
        (Container(command=[""]), {""}),
    ],
)
def test_programs_of_a_command(container: Container, programs: set[str] | None) -> None:
    assert started_by(container) == programs
