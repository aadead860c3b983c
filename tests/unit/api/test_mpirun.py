"""The number of ranks in command lines. Expected numbers agree with Open MPI 5.0, MPICH 5.0 and Intel MPI 2021."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.strategies import PROPERTY
from webhook.api.mpirun import HOSTFILE, Invocation, find
from webhook.api.pod import EnvVar


def ranks(script: str, implementation: str = "OpenMPI") -> list[int | None]:
    return [call.ranks for call in find(["/bin/bash", "-c"], [script], implementation)]


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (["mpirun", "-np", "4", "python", "x.py"], None, [4]),
        (["/usr/bin/mpirun"], ["-n", "2", "/home/mpiuser/pi"], [2]),
        (None, ["mpirun", "-n", "2", "/home/mpiuser/pi"], [2]),
        (["/entrypoint.sh"], ["mpirun", "-np", "4", "train"], [4]),
        (["/entrypoint.sh"], ["bash", "-c", "mpirun -np 4 train"], [4]),
        (["sh", "-c", "mpirun -np 4 train"], None, [4]),
        (["/bin/bash", "-o", "pipefail", "-exc"], ["mpirun -np 4 train"], [4]),
        (["bash", "--rcfile", "x", "-c"], ["mpirun -np 4 train"], [4]),
        (["bash", "run.sh"], None, []),
        (["bash", "-c"], None, []),
        (["python", "mpirun.py", "-np", "4", "x"], None, []),
        (["timeout", "1h", "mpirun", "-np", "4", "x"], None, [4]),
        (["su", "mpiuser", "-c", "mpirun -np 4 x"], None, [4]),
        (["/entrypoint.sh"], ["env", "A=b", "mpirun", "-np", "4", "x"], [4]),
        (["echo", "mpirun", "-np", "4", "x"], None, []),
        (["mpirun"], None, [None]),
        (None, None, []),
    ],
)
def test_mpirun_call_is_found_in_command_and_args(
    command: list[str] | None, args: list[str] | None, expected: list[int | None]
) -> None:
    assert [call.ranks for call in find(command, args, "OpenMPI")] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mpirun -np 4 x", 4),
        ("mpirun --np 4 x", 4),
        ("mpirun --np=4 x", 4),
        ("mpirun -c 4 x", 4),
        ("mpirun x -n 5", None),
        ("mpirun -np 4 x -n 5", 4),
        ("mpirun --allow-run-as-root -x A=b -x PATH -mca pml ob1 --prtemca c d -bind-to none -np 4 x", 4),
        ("mpirun -np 4 --brand-new-option x", None),
        ("mpirun -np 4 --tag-output=yes x", None),
        ("mpirun -np 4 -- x", None),
        ("mpirun -np 4", None),
        ("mpirun -np", None),
        ("mpirun -np 4 -np 2 x", None),
        ("mpirun -np 0 x", None),
        ("mpirun -np -4 x", None),
        ("mpirun -np \uff14 x", None),
        (f"mpirun -np {'9' * 5000} x", None),
        ("mpirun -np $NP x", None),
        ("mpirun -np $(NP) x", None),
        ("mpirun -np 4 $OPTIONS x", None),
        ("mpirun -np 4 $HOME/x", 4),
        ("mpirun -np 2 x : -np 2 y", None),
        ("mpirun -np 4 -H a,b x", None),
        ("mpirun -np 4 --hostfile hosts x", None),
        (f"mpirun -np 4 --hostfile={HOSTFILE} x", 4),
    ],
)
def test_ranks_in_calls_of_open_mpi(line: str, expected: int | None) -> None:
    assert [call.ranks for call in find(line.split(), None, "OpenMPI")] == [expected]


@pytest.mark.parametrize(
    ("line", "implementation", "expected"),
    [
        ("mpirun -n 4 x", "Intel", 4),
        ("mpiexec -np=4 x", "MPICH", 4),
        ("mpirun -genv A b -n 4 x", "Intel", 4),
        ("mpirun -genv A=b -n 4 x", "Intel", 4),
        ("mpiexec.hydra -l -n 4 x", "OpenMPI", 4),
        ("mpirun -c 4 x", "MPICH", None),
        ("mpirun -x A -n 4 x", "Intel", None),
        ("orterun -x A -n 4 x", "MPICH", 4),
        ("prterun -n 4 x", "OpenMPI", 4),
        (f"horovodrun -np 4 --hostfile {HOSTFILE} python x.py", "OpenMPI", 4),
        (f"horovodrun --num-proc 4 -hostfile {HOSTFILE} python x.py", "OpenMPI", 4),
        ("horovodrun -np 4 python x.py", "OpenMPI", None),
        ("horovodrun -np 4 --min-np 2 --host-discovery-script d.sh python x.py", "OpenMPI", None),
    ],
)
def test_ranks_in_calls_of_other_launchers(line: str, implementation: str, expected: int | None) -> None:
    assert [call.ranks for call in find(line.split(), None, implementation)] == [expected]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("mpirun -np 4 x", [4]),
        ("set -e\ncd /data && mpirun -np 4 x | tee log", [4]),
        ("mpirun \\\n  -np 4 \\\n  --tag-output \\\n  python x.py\necho done -np 7", [4]),
        ("A=1 B='2' mpirun -np 4 x", [4]),
        ("exec /opt/mpi/bin/mpirun -np 4 x", [4]),
        ("${MPI_HOME}/bin/mpirun -np 4 x", [4]),
        ("if ! mpirun -np 4 x; then exit 1; fi", [4]),
        ("for i in 1 2; do mpirun -np 4 x; done", [4]),
        ("{ mpirun -np 4 x; }; (mpirun -np 2 y)", [4, 2]),
        ("mpirun -np '4' \"x\"", [4]),
        ('mpirun -x \'A=b c\' -x "D=\\"e f\\"" -np 4 x', [4]),
        ("mpirun -x A=b#c -np 4 x", [4]),
        ("mpirun -np 4 x # -np 8", [4]),
        ("mpirun -np 4 # x", [None]),
        ("mpirun -np 4 x 2>&1", [4]),
        ("mpirun -np ${NP:-4} x", [4]),
        ("mpirun -np ${NP:-$N} x", [None]),
        ("mpirun -np ${NP%4} x", [None]),
        ("NP=${NP:-4}; mpirun -np $NP x", [4]),
        ("NP=${N:-4}; mpirun -np $NP x", [None]),
        ("read NP; mpirun -np ${NP:-4} x", [None]),
        ("mpirun -np 4 -x A=$(pwd) x", [4]),
        ("mpirun -np 4 -x A=$(pwd)/$(hostname | cut -d. -f1):$B x", [4]),
        ('mpirun -x "A=$(head -1 /etc/mpi/hostfile)" -np 4 x', [4]),
        ("mpirun -x A=`pwd` -np 4 x", [4]),
        ("mpirun -np 4 -mca $(cat a) x", [None]),
        ("mpirun -np 4 -x $(cat a) x", [None]),
        ("mpirun -x A=$(cd x; mpirun -np 2 y) -np 4 x", [4]),
        ("mpirun -np `nproc` x", [None]),
        ("mpirun -np 4 'x", [None]),
        ("# mpirun -np 4 x", []),
        ("#/bin/mpirun -np 4 x", []),
        ("timeout -k 5 --signal=TERM 1h /usr/bin/mpirun -np 4 x", [4]),
        ("time -p mpirun -np 4 x", [4]),
        ("/usr/bin/time -v -o /tmp/time mpirun -np 4 x", [4]),
        ("nice -n -5 ionice -c2 -n 0 mpirun -np 4 x", [4]),
        ("numactl -N 0 --membind=0 --physcpubind 0-7 mpirun -np 4 x", [4]),
        ("taskset -c 0-7 mpirun -np 4 x", [4]),
        ("conda run --no-capture-output -n env mpirun -np 4 x", [4]),
        ("xvfb-run -a -n 5 mpirun -np 4 x", [4]),
        ("nsys profile -o report --trace=cuda mpirun -np 4 x", [4]),
        ("command -v mpirun -np 4 x", [None]),
        ("A=b gosu 1000 mpirun -np 4 x", [4]),
        ("sudo -E -u mpiuser mpirun -np 4 x", [4]),
        ("runuser -u mpiuser -- mpirun -np 4 x", [4]),
        ("tini -s -- mpirun -np 4 x", [4]),
        ("su - mpiuser -c 'mpirun -np 4 x'", [4]),
        ('su mpiuser -c "mpirun -np 4 x"', [4]),
        ("echo timeout 1h mpirun -np 4 x", [None]),
        ("timeout " + "-k " * 60 + "mpirun -np 4 x", [None]),
        ("NP=4; mpirun -np $NP x", [4]),
        ('export NP="4" && mpirun -np "$NP" x', [4]),
        ("NP=4 mpirun -np $NP x", [None]),
        ("mpirun -np $NP x; NP=4", [None]),
        ("if true; then NP=4; fi; mpirun -np $NP x", [None]),
        ("true && NP=4; mpirun -np $NP x", [None]),
        ("NP=4; NP=8; mpirun -np $NP x", [None]),
        ("NP=$(nproc); mpirun -np $NP x", [None]),
        ("NP=4; source env.sh; mpirun -np $NP x", [None]),
        (". env.sh; NP=4; mpirun -np $NP x", [None]),
        ("echo mpirun -np 4 x", [None]),
        ("echo 'mpirun -np 4 x'", [None]),
        ("mpirun_rsh -np 4 x", [None]),
        ("cat <<EOF > run.sh\nmpirun -np 4 x\nEOF\nbash run.sh", [None]),
        ("python x.py -np 4", []),
        ("mpirun -np 4 x\n" + " " * 100_000, [4]),
        ("mpirun -np 4 x\n" * 30, [4] * 30),
        ("mpirun -np 4 " + "-v " * 2_000 + "x", [4]),
        # The words of the first call include the second call.
        ("mpirun -np 4 env mpirun -np 2 x", [4, 2]),
        ("env mpirun -np 4 " * 10 + "x", [4] * 10),
    ],
)
def test_ranks_in_scripts(script: str, expected: list[int | None]) -> None:
    assert ranks(script) == expected


@pytest.mark.parametrize(
    ("line", "implementation", "expected"),
    [
        ("mpirun -np 4 x", "OpenMPI", Invocation("mpirun", 4, refuses=True)),
        ("mpirun -np 4 x", "MPICH", Invocation("mpirun", 4)),
        ("mpirun -np 4 --oversubscribe x", "OpenMPI", Invocation("mpirun", 4, refuses=True, oversubscribe=True)),
        (
            "mpirun -np 4 --map-by slot:OVERSUBSCRIBE x",
            "OpenMPI",
            Invocation("mpirun", 4, refuses=True, oversubscribe=True),
        ),
        (
            "mpirun -np 4 -mca rmaps_base_oversubscribe 1 x",
            "OpenMPI",
            Invocation("mpirun", 4, refuses=True, oversubscribe=True),
        ),
        ("mpirun -np 4 --nooversubscribe x", "OpenMPI", Invocation("mpirun", 4, refuses=True)),
        ("mpirun -np 4 -mca rmaps_base_no_oversubscribe 1 x", "OpenMPI", Invocation("mpirun", 4, refuses=True)),
        ("mpirun -np 4 --map-by ppr:2:node x", "OpenMPI", Invocation("mpirun", 4, per_node=True, refuses=True)),
        ("mpirun -np 4 -N 2 x", "OpenMPI", Invocation("mpirun", 4, per_node=True, refuses=True)),
        ("mpirun -n 4 -ppn 2 x", "Intel", Invocation("mpirun", 4, per_node=True)),
    ],
)
def test_options_in_calls_without_a_script(line: str, implementation: str, expected: Invocation) -> None:
    [call] = find(line.split(), None, implementation)
    assert replace(call, words=(), options=None, started="", without_shell=False) == expected
    assert (call.started, call.without_shell) == ("x", True)


words = st.sampled_from(
    ["mpirun", "sh", "-c", "-np", "4", "=", "-x", "$", '"', "'", "\\", "\n", ":", "#", ";", "(", "--hostfile", "-genv"]
)


@PROPERTY
@given(st.lists(words | st.text(max_size=4), max_size=12), st.booleans())
def test_any_command_line_is_read_without_an_exception(parts: list[str], as_script: bool) -> None:
    calls = find(["sh", "-c", " ".join(parts)] if as_script else parts, None, "MPICH")
    assert all(call.ranks is None or call.ranks > 0 for call in calls)


@pytest.mark.parametrize(
    ("command", "value", "expected"),
    [
        (["mpirun", "-np", "$(NP)", "x"], "4", 4),
        (["mpirun", "-np", "$(NP)", "x"], None, None),
        (["mpirun", "-np", "$(NP)", "x"], "$(OTHER)", None),
        (["mpirun", "-np", "$$(NP)", "x"], "4", None),
        (["mpirun", "-np", "$NP", "x"], "4", None),
        (["bash", "-c", "mpirun -np $NP x"], "4", 4),
        (["bash", "-c", "mpirun -np $(NP) x"], "4", 4),
        (["bash", "-c", "if a; then b; fi; mpirun -np $NP x"], "4", 4),
        (["bash", "-c", "for NP in 1 2; do mpirun -np $NP x; done"], "4", None),
        (["bash", "-c", "read NP; mpirun -np $NP x"], "4", None),
        (["bash", "-c", "mpirun -np ${NP:-2} x"], "4", 4),
        (["bash", "-c", "mpirun -np ${NP:-2} x"], None, None),
        (["bash", "-c", "NP=${NP:-2}; mpirun -np $NP x"], "4", 4),
        (["bash", "-c", "NP=${NP:-2}; mpirun -np $NP x"], None, None),
    ],
)
def test_number_of_ranks_may_come_from_a_variable_of_the_container(
    command: list[str], value: str | None, expected: int | None
) -> None:
    assert [call.ranks for call in find(command, None, "OpenMPI", [EnvVar("NP", value)])] == [expected]


@pytest.mark.parametrize("script", ["mpirun -np ${NP:-2} x", "NP=${NP:-2}; mpirun -np $NP x"])
def test_default_value_in_a_script_is_uncertain_if_the_field_env_from_may_set_the_variable(script: str) -> None:
    assert [call.ranks for call in find(["bash", "-c", script], None, "OpenMPI", env_from=True)] == [None]
