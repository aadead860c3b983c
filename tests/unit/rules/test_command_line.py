"""Commands that start nothing; `tests/conformance/test_open_mpi_slots.py` has what mpirun makes of numbers."""

import shlex
from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.rule_checks import found, run, violations
from webhook.admission.messages import Finding
from webhook.rules import Violation

ID = "command-line"
WHERE = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0]"
LAUNCHER, WORKER = (f"{role}.template.spec.containers.0" for role in ("Launcher", "Worker"))
UNSPLIT = "is not split into words"
ANOTHER = ", or starts another number"


def check(command: Any, args: Any = None, implementation: str = "OpenMPI") -> list[Violation]:
    """The good job has 8 slots."""
    changes = {
        "spec.mpiImplementation": implementation,
        f"{LAUNCHER}.command": command,
        f"{LAUNCHER}.args": args,
    }
    return violations(ID, changes)


def no_number(text: str, more: str = ANOTHER, program: str = "mpirun") -> str:
    return f"{text} is no number of ranks ({program} refuses it{more})"


@pytest.mark.parametrize(
    ("command", "args", "implementation"),
    [
        (["mpirun", "-np", "4", "train"], None, "OpenMPI"),
        (["mpirun"], ["-np", "4", "train"], "OpenMPI"),
        (["mpirun", "-np", "04", "train"], None, "OpenMPI"),
        (["mpirun", "-np", "0", "train"], None, "OpenMPI"),
        (["mpirun", "train", "-n", "eight"], None, "OpenMPI"),
        (["mpirun", "-np", "$(RANKS)", "train"], None, "OpenMPI"),
        (["mpirun", "--brand-new", "-np", "eight", "train"], None, "OpenMPI"),
        (["mpirun", "--brand-new", "a b", "train"], None, "OpenMPI"),
        (["mpirun", "--brand-new=a b", "train"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "train", "-n 4"], None, "OpenMPI"),
        (["mpiexec", "-n", "4", "train"], None, "Intel"),
        (["bash", "-c", "mpirun -np $N train"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np $(wc -l < hosts) train"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np `nproc` train"], None, "OpenMPI"),
        (["bash", "-c"], ["mpirun -np 4 train"], "OpenMPI"),
        (["bash", "-o", "pipefail", "-c", "mpirun -np 4 train"], None, "OpenMPI"),
        (["bash", "/run.sh", "mpirun -np 4 train"], None, "OpenMPI"),
        (["bash", "/my scripts/run.sh"], None, "OpenMPI"),
        (None, ["mpirun -np 4 train"], "OpenMPI"),  # for the image's entry point
        (["/entrypoint.sh", "mpirun -np 4 train"], None, "OpenMPI"),
        ([""], None, "OpenMPI"),
        (None, None, "OpenMPI"),
    ],
)
def test_what_may_start(command: Any, args: Any, implementation: str) -> None:
    assert check(command, args, implementation) == []


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        (["mpirun -np 4 python train.py"], 'Write ["mpirun", "-np", "4", ...].'),
        (["python train.py"], 'Write ["python", "train.py"].'),
        (["mpirun "], 'Write ["mpirun"].'),
        (["sh -c", "mpirun -np 4 train"], 'Write ["sh", "-c", ...].'),
        (["run -x A='b c' x"], 'Write ["run", "-x", "A=b c", ...].'),
        (["run -x it's"], 'Write ["run", "-x", "it\'s"].'),
        (["cd /app && mpirun -np 4 train"], 'Put "sh", "-c" before it.'),
        (["mpirun -np $N train"], 'Put "sh", "-c" before it.'),
        (["mpirun -np 4 train\n"], 'Put "sh", "-c" before it.'),
    ],
)
def test_a_command_in_one_word(command: list[str], fix: str) -> None:
    [violation] = check(command)
    assert found([violation]) == [f"(advice) {WHERE}.command: {UNSPLIT}"]
    assert violation.fix == fix


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("python -c 'import torch {}' x", 'Write ["python", "-c", ...].'),
        ("run -x 'not ended {}", 'Write ["run", "-x", ...].'),
        ("a {} b", 'Write ["a", ...].'),
        ("{} b", 'Write ["' + "x" * 21 + '...", ...].'),
        ("'{} b", "Write [\"'" + "x" * 20 + '...", ...].'),
        ("   {blanks}a b{blanks}  ", 'Write ["a", "b"].'),
        ("a{blanks}b", 'Write ["a", ...].'),
        ("{blanks}", "Write []."),
    ],
)
def test_a_long_command_in_one_word(command: str, fix: str) -> None:
    [violation] = check([command.format("x" * 100_000, blanks=" " * 100_000)])
    assert violation.fix == fix


@pytest.mark.parametrize("length", [1, 100, 255, 256, 257, 5_000])
def test_only_the_beginning_of_a_command_is_split(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    class Split(shlex.shlex):
        def __init__(self, text: str, **options: Any) -> None:
            lengths.append(len(text))
            super().__init__(text, **options)

    monkeypatch.setattr(shlex, "shlex", Split)
    check(["x " * length])
    assert lengths == [min(2 * length - 1, 256)]


def test_of_an_option_with_many_words_the_first_are_named() -> None:
    [violation] = check(["mpirun", "-np" + " 4" * 50_000, "train"])
    assert violation.fix == 'Split it: "-np"' + ', "4"' * 49 + ", ..."


def test_every_container_is_looked_at() -> None:
    one = {"name": "x", "command": ["sleep 1"]}
    result = violations(ID, {f"{WORKER}.command": ["/usr/sbin/sshd -De"], "Worker.template.spec.initContainers": [one]})
    path = "spec.mpiReplicaSpecs[Worker].template.spec"
    assert [each.path for each in result] == [f"{path}.containers[0].command", f"{path}.initContainers[0].command"]


@pytest.mark.parametrize(
    ("command", "args", "field"),
    [
        (["bash", "mpirun -np 4 train"], None, "command"),
        (["/bin/sh", "-e"], ["cd /app; mpirun -np 4 train"], "args"),
    ],
)
def test_a_shell_without_c(command: list[str], args: Any, field: str) -> None:
    [violation] = check(command, args)
    shell = command[0].rpartition("/")[2]
    assert found([violation]) == [f"(advice) {WHERE}.{field}: {shell} takes the command line for a file"]
    assert violation.fix == 'Put "-c" before it.'


@pytest.mark.parametrize(
    ("command", "implementation", "fault", "fix"),
    [
        ("mpirun -np eight train", "OpenMPI", no_number("-np eight"), "Set -np to 8."),
        ("mpirun -n 4x train", "OpenMPI", no_number("-n 4x"), "Set -n to 8."),
        ("mpirun -c 2.0 train", "OpenMPI", no_number("-c 2.0"), "Set -c to 8."),
        ("mpirun -np=+2 train", "OpenMPI", no_number("-np +2"), "Set -np to 8."),
        ("mpirun -np 99999999999 train", "OpenMPI", no_number("-np 99999999999"), "Set -np to 8."),
        ("mpirun -np {{np}} train", "OpenMPI", no_number("-np {{np}}"), "Set -np to 8."),
        ("/opt/intel/bin/mpirun -np -1 train", "OpenMPI", no_number("-np -1"), "Set -np to 8."),
        ("mpirun -np -1 train", "MPICH", no_number("-np -1"), "Set -np to 8."),
        ("mpiexec -n 0 train", "Intel", no_number("-n 0", program="mpiexec"), "Set -n to 8."),
        ("mpirun -n 00 train", "MPICH", no_number("-n 00"), "Set -n to 8."),
        ("horovodrun -np many train", "OpenMPI", no_number("-np many", program="horovodrun"), "Set -np to 8."),
    ],
)
def test_what_may_be_no_number(command: str, implementation: str, fault: str, fix: str) -> None:
    [violation] = check(command.split(), implementation=implementation)
    assert found([violation]) == [f"(advice) {WHERE}.command: {fault}"]
    assert violation.fix == fix


def test_a_script_may_do_something_else_before() -> None:
    [violation] = check(["sh", "-c"], ["mpirun -np -1 train"])
    assert found([violation]) == [f"(advice) {WHERE}.args: {no_number('-np -1')}"]


def test_a_negative_number_is_refused_by_every_open_mpi() -> None:
    [violation] = check(["mpirun", "--allow-run-as-root", "-np", "-1", "train"])
    assert found([violation]) == [f"{WHERE}.command: {no_number('-np -1', '')}"]
    assert violation.fix == "Set -np to 8."


def test_an_option_in_one_word() -> None:
    [violation] = check(["mpirun", "-np 4", "train"])
    assert found([violation]) == [f'{WHERE}.command: "-np 4" is one word, and no option']
    assert violation.fix == 'Split it: "-np", "4".'
    [violation] = check(["mpiexec", "-n 4", "train"], implementation="MPICH")
    assert violation.advisory


def test_without_workers_nobody_knows_how_many() -> None:
    [violation] = run(ID, changed({"Worker": REMOVE, f"{LAUNCHER}.command": ["mpirun", "-np", "x", "train"]}))
    assert violation.fix == "Write how many ranks to start."


def test_windows_has_programs_with_spaces() -> None:
    command = {f"{WORKER}.command": ["C:\\Program Files\\x.exe"], "Worker.template.spec.os": {"name": "windows"}}
    assert violations(ID, command) == []


@pytest.mark.parametrize(
    "command",
    [
        ["mpirun -np 4 python train.py"],
        ["/usr/local/bin/mpirun --allow-run-as-root -np 4 python train.py"],
        ["cd /app && mpirun -np 4 train"],
        ["bash", "mpirun -np 4 train"],
        ["mpirun", "-np", "eight", "train"],
        ["mpirun", "-np", "-1", "train"],
        ["mpirun", "-np 4", "train"],
    ],
)
def test_it_is_short(command: list[str]) -> None:
    [violation] = check(command)
    assert Finding(ID, violation).warning.endswith(f"{violation.fix} [{ID}]")
