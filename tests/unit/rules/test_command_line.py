"""The rule `command-line` reports commands that do not start their program.

The conformance tests compare the rule's messages about numbers of ranks with the behaviour of mpirun.
"""

import time
from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.rule_checks import as_texts, fits_a_warning, run, violations
from webhook.admission.messages import Finding
from webhook.rules import Violation

ID = "command-line"
WHERE = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0]"
LAUNCHER, WORKER = (f"{role}.template.spec.containers.0" for role in ("Launcher", "Worker"))
UNSPLIT = "is not split into words"
CONTAINED = "Put its image and its command into this container."
BEFORE_IT = 'Put "sh", "-c" before it.'
BY_BASH = 'Write all of it as one text after "bash", "-c".'
ANOTHER = ", or starts another number"


def check(command: Any, args: Any = None, implementation: str = "OpenMPI") -> list[Violation]:
    """The violations of a job with this launcher and 8 slots in all."""
    changes = {
        "spec.mpiImplementation": implementation,
        f"{LAUNCHER}.command": command,
        f"{LAUNCHER}.args": args,
    }
    return violations(ID, changes)


def only(command: Any, args: Any = None, implementation: str = "OpenMPI") -> Violation:
    """The only violation. Its fix must fit into a warning."""
    [violation] = check(command, args, implementation)
    assert Finding(ID, violation).warning.endswith(f"{violation.fix} [{ID}]")
    return violation


def no_number(text: str, more: str = ANOTHER, program: str = "mpirun") -> str:
    return f"{text} is not a number of ranks ({program} refuses it{more})"


@pytest.mark.parametrize(
    ("command", "args", "implementation"),
    [
        (["mpirun", "-np", "4", "train"], None, "OpenMPI"),
        (["mpirun"], ["-np", "4", "train"], "OpenMPI"),
        (["mpirun", "-np", "04", "train"], None, "OpenMPI"),
        (["mpirun", "-np", "0", "train"], None, "OpenMPI"),
        (["mpirun", "train", "-n", "eight"], None, "OpenMPI"),
        (["mpirun", "--brand-new", "-np", "eight", "train"], None, "OpenMPI"),
        (["mpirun", "--brand-new", "a b", "train"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "train", "-n 4"], None, "OpenMPI"),
        (["mpiexec", "-n", "4", "train"], None, "Intel"),
        (["bash", "-c", "N=4; mpirun -np $N train"], None, "OpenMPI"),
        (["bash", "-c", ". /env.sh; mpirun -np $N train"], None, "OpenMPI"),
        (["bash", "-c", "read N < /n; mpirun -np $N train"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np ${N:-4} train"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np $OMPI_MCA_orte_set_default_slots train"], None, "OpenMPI"),
        (["bash", "-c", "awk '{print $(NF)}' f; X='$(A)'; mpirun -np 4 x \"don't $(date)\""], None, "OpenMPI"),
        (["bash", "-c", "echo $$(NP) $(K_MPI_JOB_ROLE) $(REDIS_SERVICE_HOST); mpirun -np 4 x"], None, "OpenMPI"),
        (["bash", "-c", "NUM() { echo 4; }; mpirun -np $(NUM) x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np $(wc -l < /etc/mpi/hostfile) -N 1 x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np `nproc` train"], None, "OpenMPI"),
        (["bash", "-c"], ["mpirun -np 4 train"], "OpenMPI"),
        (["bash", "/run.sh", "mpirun -np 4 train"], None, "OpenMPI"),
        (["bash", "/run.sh", "mpirun", "-np", "4", "train"], None, "OpenMPI"),
        (["bash", "mpirun", "-np", "4", "train"], None, "Intel"),  # mpirun of Intel is a shell script
        (["bash", "/my scripts/run.sh"], None, "OpenMPI"),
        (None, ["mpirun -np 4 train"], "OpenMPI"),  # the image's entry point reads the word
        (["/entrypoint.sh", "mpirun -np 4 train"], None, "OpenMPI"),
        ([""], None, "OpenMPI"),
        (None, None, "OpenMPI"),
        # The script uses the words that follow it, or only one word follows. Shells use the first such word as $0.
        (["bash", "-c", 'mpirun -np "$1" x', "run", "4"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 8 python x.py", "mpirun"], None, "OpenMPI"),
        (["bash", "-c", "source /entrypoint.sh", "--", "mpirun", "-np", "8", "x"], None, "OpenMPI"),
        (["bash", "-c", "$(K_MPI_JOB_ROLE)", "run", "4"], None, "OpenMPI"),
        (["bash", "-lc", 'exec "$@"', "--", "mpirun", "-np", "4", "x"], None, "OpenMPI"),
        (["bash", "-c", 'mpirun "${@:1}"', "run", "-np", "4", "x"], None, "OpenMPI"),
        (["sh", "-ec", "mpirun -np 4 x", "sh"], None, "OpenMPI"),
        (["bash", "-c", "/run.sh", "run.sh"], None, "OpenMPI"),
        (["bash", "-c", "/run.sh"], None, "OpenMPI"),
        (["bash", "-c", "-e", "mpirun -np 4 x"], None, "OpenMPI"),
        (["bash", "-c", "cd /app && ./prepare && python x.py", "unused", "words"], None, "OpenMPI"),
        (["bash", "-c", "for h; do ssh $h; done", "run", "-v", "mpirun"], None, "OpenMPI"),
        (["bash", "-c", "shift; ./run", "run", "mpirun", "-np", "4"], None, "OpenMPI"),
        (["bash", "-c", "while getopts n: o; do :; done; ./run", "run", "-n", "mpirun"], None, "OpenMPI"),
        (["bash", "-c", "set -e; . /setup.sh", "run", "-v"], None, "OpenMPI"),
        (["tini", "--", "bash", "-c", 'exec "$@"', "--", "mpirun", "-np", "4", "x"], None, "OpenMPI"),
        # Calls that need no program, and calls whose program is unknown.
        (["mpirun", "--version"], None, "OpenMPI"),
        (["mpirun", "-h"], None, "MPICH"),
        (["mpirun", "-np", "2", "--app", "/etc/app"], None, "OpenMPI"),
        (["horovodrun", "--check-build"], None, "OpenMPI"),
        (["/entrypoint.sh"], ["mpirun", "-np", "2"], "OpenMPI"),
        (None, ["mpirun", "-np", "2"], "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 $PROGRAM"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 $(cat program)"], None, "OpenMPI"),
        (["bash", "-c", 'mpirun -np 2 "$@"', "run", "x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 < /input x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 \\\n  -x A=B \\\n  python x"], None, "OpenMPI"),
        (["bash", "-c", 'RUN=(mpirun -np 2\n-x A=B)\n"${RUN[@]}" x'], None, "OpenMPI"),
        (["bash", "-c", "RUN=(\n  mpirun -np 2\n  x)\n"], None, "OpenMPI"),
        (["bash", "-c", "RUN='mpirun -np 2'; $RUN x"], None, "OpenMPI"),
        (["bash", "-c", 'echo "usage:\nmpirun -np 2\n"; ./run'], None, "OpenMPI"),
        (["bash", "-c", "cat > run <<EOF\nmpirun -np 2\nEOF"], None, "OpenMPI"),
        (["bash", "-c", "# cd /x && mpirun -np 2\nmpirun -np 2 x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 x # or: cd /x; mpirun -np 2"], None, "OpenMPI"),
        (["bash", "-c", 'echo "# $(date)" && mpirun -np 2 x'], None, "OpenMPI"),
        (["bash", "-c", 'RUN=(env A=$(hostname)\nmpirun -np 2\n-x A x)\n"${RUN[@]}"'], None, "OpenMPI"),
        (["bash", "-c", "cat <<< 'a'; mpirun -np 2 x"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 2 < <(cat input) x"], None, "OpenMPI"),
        (["bash", "-c", "case $1 in\n  mpirun) ./run;;\nesac"], None, "OpenMPI"),
        (["bash", "-c", "which mpirun\ncommand -v mpirun; ./run"], None, "OpenMPI"),
        (["bash", "-c", 'mpirun() { ./run "$@"; }\nmpirun -np 2 x'], None, "OpenMPI"),
        (["env", "A=B", "tini", "--", "mpirun", "-np", "2", "x"], None, "OpenMPI"),
        (["env", "A=B"], None, "OpenMPI"),
        # Words with a blank that are not a command line.
        (["mpirun", "python", "t.py", "--launcher_args", "--a 1", "--prompt", "run x.py", "-"], None, "OpenMPI"),
        (["python", "-c", "import a; a.b()"], None, "OpenMPI"),
        (["bash", "-c", "ssh-keygen -f /other/id_rsa; mpirun x"], None, "OpenMPI"),
        (["mpirun", "-np", "2", "/opt/my app/bin/run"], None, "OpenMPI"),
        (["bash", "-c", 'mpirun -np 2 bash -c "cd /app && python x.py"'], None, "OpenMPI"),
        # Variables that a shell or Kubernetes replaces, and texts that only look like a variable.
        (["mpirun", "-np", "$(K_MPI_JOB_ROLE)", "x"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "x", "--at", "$(REDIS_SERVICE_HOST):$(REDIS_SERVICE_PORT)"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "bash", "-c", "echo $(HOSTNAME)"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "awk", "{print $(NF)}", "/data"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "awk", "$(NF)", "/data"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "tcsh", "-c", "x $(Y)"], None, "OpenMPI"),
        (["mpirun", "-np", "4", "x", "--out=$OUT", "$HOME"], None, "OpenMPI"),
        (["bash", "-c", "mpirun -np 4 x &\nwait $!\n"], None, "OpenMPI"),
    ],
)
def test_command_that_may_start_its_program_is_accepted(command: Any, args: Any, implementation: str) -> None:
    assert check(command, args, implementation) == []


@pytest.mark.parametrize(
    ("command", "args", "fault", "fix"),
    [
        (["cd", "/app", "&&", "mpirun", "-np", "4", "x"], None, '"cd" needs a shell', BY_BASH),
        (["x", "a b", "|", "tee", "l"], None, '"|" needs a shell', BY_BASH),
        (["x"], [">", "log"], '">" needs a shell', BY_BASH),
        (["export", "A=b"], None, '"export" needs a shell', BY_BASH),
        (["gosu", "&"], None, '"&" needs a shell', "Remove the &."),
        (["source", "env.sh"], None, '"source" needs a shell', BY_BASH),
        (["A=B", "mpirun", "-np", "4", "x"], None, '"A=B" needs a shell', BY_BASH),
        (
            ["sh", "-c", "ssh-keygen -t rsa -N '' -f ~/.ssh/id_rsa && mpirun -np 4 x"],
            None,
            "ssh-keygen fails: the job has keys",
            "Remove ssh-keygen.",
        ),
        (["mpirum"], ["-np", "4", "x"], "mpirum is not a program of MPI", "Write mpirun."),
        (["sh", "-c", "cd /a; mpi-run -np 4 x"], None, "mpi-run is not a program of MPI", "Write mpirun."),
        (["mpiexe", "-n", "4", "x"], None, "mpiexe is not a program of MPI", "Write mpiexec."),
        (["mpirun", "-pn", "4", "x"], None, "mpirun has no option -pn", "Write -np."),
        (["mpirun", "\u2014np", "4", "x"], None, "mpirun has no option \u2014np", "Write -np."),
        (["sh", "-c", "mpirun \u2013host a x"], None, "mpirun has no option \u2013host", "Write --host."),
        (["/bin/bash -c"], ["mpirun -np 4 x"], UNSPLIT, 'Write ["/bin/bash", "-c"].'),
        (["python train.py"], None, UNSPLIT, 'Write ["python", "train.py"].'),
        (
            ["srun", "-n", "4", "x"],
            None,
            "srun is not a program of MPI",
            "Write mpirun without its options. Set -np to 8.",
        ),
        (
            ["mpirun", "-np", "4", "cd", "/app", "&&", "x"],
            None,
            '"&&" needs a shell',
            'Write the words from "cd" on as one text after "bash", "-c".',
        ),
        (["sh", "-c", "mpirun cd /a && x"], None, 'mpirun cannot start "cd"', "Start bash -c 'cd ...' with it."),
        (["mpirun", "-x", "PATH=$PATH:/a", "x"], None, "no shell replaces $PATH", "Run it by bash -c."),
        (["mpirun", "-wdir", "$(pwd)", "x"], None, "Kubernetes replaces $(pwd) by a variable", "Run it by bash -c."),
        (
            ["bash", "-c", "mpirun x &"],
            None,
            "the last command goes to the background and the container ends",
            "Remove the &.",
        ),
        (["/usr/sbin/sshd", "-D", "&"], None, '"&" needs a shell', "Remove the &."),
        (["bash", "-c", "mpirun -np 4 x"], [">", "/log"], 'bash ignores "> /log"', "Add it to the text after -c."),
        (
            ["sh", "-c", "mpirun -x A=$(A) x"],
            None,
            "there is no variable A in env",
            "Add it, or correct the name.",
        ),
        (["bash", "-c", "mpirun -np ${NP} x"], None, "nothing in the job sets NP", "Set -np to 8."),
        (["bash", "-c", "mpirun -np $(NP) x"], None, "there is no variable NP in env", "Set -np to 8."),
        (["bash", "-c", "NP=4; mpirun -np $(NP) x"], None, "there is no variable NP in env", "Write $NP."),
        (
            ["bash", "-c", "cd $(APP_DIR); mpirun x"],
            None,
            "there is no variable APP_DIR in env",
            "Add it, or correct the name.",
        ),
        (
            ["mpiexec.hydra", "-np", "4", "--mca", "btl", "tcp", "x"],
            None,
            "mpiexec.hydra has no --mca",
            "Write mpirun.",
        ),
        (["mpiexec.hydra", "-np", "4", "-x", "A", "x"], None, "mpiexec.hydra has no -x", "Write mpirun."),
        (None, ["deepspeed", "t.py", "--num_gpus 8"], '"--num_gpus 8" is one word', 'Split it: "--num_gpus", "8".'),
        (
            ["mpirun", "torchrun", "--nproc_per_node 2", "t.py"],
            None,
            '"--nproc_per_node 2" is one word',
            'Split it: "--nproc_per_node", "2".',
        ),
        (["mpirun", "python", "t.py --e 3"], None, '"t.py --e 3" is one word', 'Split it: "t.py", "--e", "3".'),
        (["mpirun", "-np", "4", "/usr/bin/python3"], ["t.py", "-e 3"], '"-e 3" is one word', 'Split it: "-e", "3".'),
        (["docker", "run", "a:1"], None, "a pod has no docker", CONTAINED),
        (["bash", "-c", "module load a; singularity exec a.sif x"], None, "a pod has no singularity", CONTAINED),
        (["mpirun", "-np", "4", "apptainer", "exec", "a.sif", "x"], None, "a pod has no apptainer", CONTAINED),
        (
            ["bash", "-c", "mpirun --hostfile $PBS_NODEFILE x"],
            None,
            "nothing in the job sets PBS_NODEFILE",
            "Use /etc/mpi/hostfile.",
        ),
        (
            ["mpirun", "-H", "$SLURM_JOB_NODELIST", "x"],
            None,
            "no shell replaces $SLURM_JOB_NODELIST",
            "Use --hostfile /etc/mpi/hostfile.",
        ),
        (["mpirun -np 4 python train.py"], None, UNSPLIT, BEFORE_IT),
        (["mpirun "], None, UNSPLIT, 'Write ["mpirun"].'),
        (["sh -c", "mpirun -np 4 train"], None, UNSPLIT, "Write each of its words in quotes."),
        (["tini", "--", "python train.py"], None, UNSPLIT, BEFORE_IT),
        ([" " * 100_000 + "x"], None, UNSPLIT, BEFORE_IT),
        (["mpirun", "-np", "2", "python train.py"], None, '"python train.py" is one word', "Split it at its blanks."),
        (["mpirun", "/bin/x train.py"], None, '"/bin/x train.py" is one word', "Split it at its blanks."),
        (["bash", "-c", "mpirun 'python train.py'"], None, '"python train.py" is one word', "Remove its quotes."),
        (["/bin/bash"], ["mpirun", "x"], "bash takes mpirun for a script", "Start it without bash."),
        (["sh", "-e", "/bin/mpiexec", "x"], None, "sh takes /bin/mpiexec for a script", "Start it without sh."),
        (["bash", "mpirun -np 4 x"], None, "bash takes the command line for a file", 'Put "-c" before it.'),
        (["/bin/sh", "-e"], ["cd /a; mpirun x"], "sh takes the command line for a file", 'Put "-c" before it.'),
    ],
)
def test_command_that_starts_nothing_is_reported_with_the_fix(command: Any, args: Any, fault: str, fix: str) -> None:
    assert [(each.message, each.fix) for each in check(command, args)] == [(fault, fix)]


@pytest.mark.parametrize(
    ("command", "args", "field", "ignored"),
    [
        (["bash", "-c"], ["mpirun", "-np", "2", "x"], "args", "-np 2 x"),
        (["sh", "-ec", "mpirun"], ["-np", "2", "x"], "args", "-np 2 x"),
        (["bash", "--norc", "-c", "--"], ["horovodrun", "-np", "2", "x"], "args", "-np 2 x"),
        (["bash", "-c"], ["cd /app && mpirun", "-np", "2"], "args", "-np 2"),
        (["bash", "-c"], ["python", "x.py"], "args", "x.py"),
        (["bash", "-c"], ["cd /app", "&&", "mpirun", "x"], "args", "&& mpirun x"),
        (["bash", "-c"], ["cd $APP && mpirun", "x"], "args", "x"),
        (["bash", "-c", "mpirun -np 8 python t.py", "--epochs", "5"], None, "command", "--epochs 5"),
        (["bash", "-c", "python t.py", "t", "-e", "5"], None, "command", "t -e 5"),
        (["bash", "-c", "for h in a b; do ./run $h; done", "-v"], None, "command", "-v"),
        (["bash", "-c", "mpirun", "-np", "2", "python", "train.py"], None, "command", "-np 2 python tr..."),
        (None, ["bash", "-c", "mpirun", "-np", "2", "x"], "args", "-np 2 x"),
        (["tini", "-g", "--"], ["bash", "-c", "mpirun", "-np", "2", "x"], "args", "-np 2 x"),
        (["busybox", "sh", "-c", "mpirun", "-np", "2"], None, "command", "-np 2"),
        (["bash", "-c"], ["cd /work", "mpirun -np 2 x"], "args", "mpirun -np 2 x"),
        (["bash", "-c"], ["mkdir -p /run/sshd", "/usr/sbin/sshd -De"], "args", "/usr/sbin/sshd -De"),
    ],
)
def test_words_after_the_script_of_a_shell_are_reported(command: Any, args: Any, field: str, ignored: str) -> None:
    violation = only(command, args)
    words = [word.rpartition("/")[2] for word in (*(command or ()), *(args or ()))]
    shell = next(word for word in words if word in {"bash", "sh"})
    assert as_texts([violation]) == [f'(advice) {WHERE}.{field}: {shell} ignores "{ignored}"']
    joined = (args or [""])[-1] in {"mpirun -np 2 x", "/usr/sbin/sshd -De"}
    assert violation.fix == ("Join it to the text by &&." if joined else "Add it to the text after -c.")


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        (["mpirun"], "Add the program after the options."),
        (["mpirun", "-np", "2", "--bind-to", "none"], "Add the program after the options."),
        (["bash", "-c", "mpirun -np 2\n-x A=B\npython x"], "End each continued line with \\."),
        (["bash", "-c", "mpirun -np 2 \\ \n  python x"], "End each continued line with \\."),
        (["sh", "-ec", "cd /app; exec mpirun -np 2; python x"], "Add the program after the options."),
        (["bash", "-c", "mpirun -np 2 && python x"], "Add the program after the options."),
        (["bash", "-c", "mpirun -np 2", "train"], "Add the program after the options."),
        (["bash", "-c", "mpirun -np 2 > /log 2>&1; ./x"], "Add the program after the options."),
        (["bash", "-c", "A=(a $(b)); mpirun -np 2"], "Add the program after the options."),
        (["bash", "-c", "mpirun"], "Add the program after the options."),
        (["bash", "-c", "cd /app\n  exec mpirun\n"], "Add the program after the options."),
        (["env", "A=B", "mpirun", "-np", "2"], "Add the program after the options."),
        (["tini", "--", "bash", "-c", "mpirun -np 2"], "Add the program after the options."),
    ],
)
@pytest.mark.parametrize("implementation", ["OpenMPI", "MPICH"])
def test_mpirun_without_a_program_is_reported(command: list[str], fix: str, implementation: str) -> None:
    violation = only(command, implementation=implementation)
    assert as_texts([violation]) == [f"(advice) {WHERE}.command: mpirun gets no program"]
    assert violation.fix == fix


ENV = {f"{LAUNCHER}.env": [{"name": "NP", "value": "8"}]}


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        (["bash", "-c", "cd /app", "mpirun -np $SLURM_NTASKS x"], "Join it to the text by &&."),
        (["cd", "/app", "&&", "mpirun", "-np", "$SLURM_NTASKS", "x"], BY_BASH),
    ],
)
def test_faults_of_an_mpirun_that_the_shell_does_not_run_are_reported_too(command: list[str], fix: str) -> None:
    assert [each.fix for each in check(command)] == [fix, "Set -np to 8."]


def test_fix_for_a_shell_also_replaces_the_variable() -> None:
    without_shell = {f"{LAUNCHER}.command": ["mpirun", "-np", "$NP", "x", ">", "log"]}
    assert [violation.fix for violation in violations(ID, {**without_shell, **ENV})] == [BY_BASH]
    assert [violation.fix for violation in violations(ID, without_shell)] == [BY_BASH, "Set -np to 8."]


def test_unreplaced_variable_is_reported() -> None:
    violation = only(["mpirun", "-np"], ["$NP", "x"])
    assert as_texts([violation]) == [f"(advice) {WHERE}.args: no shell replaces $NP"]
    assert violation.fix == "Set -np to 8."
    assert as_texts(check(["mpirun", "-np", "${NP}", "x"])) == [f"(advice) {WHERE}.command: no shell replaces ${{NP}}"]
    violation = only(["mpirun", "-np", "$(NP)", "x"])
    assert as_texts([violation]) == [f"(advice) {WHERE}.command: there is no variable NP in env"]
    violation = only(["mpirun", "-np", "$(nproc)", "x"])
    assert as_texts([violation]) == [f"(advice) {WHERE}.command: Kubernetes replaces $(nproc) by a variable"]
    assert violation.fix == "Run it by bash -c."
    assert len(check(["mpirun", "-np", "4", "x", "--lr=$(LR)"])) == 1
    assert len(check(["mpirun", "-np=${NP:-4}", "x"])) == 1
    command = {f"{LAUNCHER}.command": ["mpirun", "-np", "$(NP)", "x"]}
    assert violations(ID, {**command, **ENV}) == []
    for words in (["-np", "$NP", "x"], ["x", "--ranks=${NP}"]):
        [violation] = violations(ID, {f"{LAUNCHER}.command": ["mpirun", *words], **ENV})
        assert violation.fix == "Write $(NP)."
    assert len(violations(ID, {f"{LAUNCHER}.command": ["sh", "-c", "cd $(A); x $(A) $(B)"]})) == 2
    of_config_map = {f"{LAUNCHER}.envFrom": [{"configMapRef": {"name": "c"}}]}
    assert violations(ID, {**command, **of_config_map}) == []
    assert violations(ID, {f"{LAUNCHER}.command": ["sh", "-c", "cd $(A)"], **of_config_map}) == []


SSHD = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0]"
BY_NAME = f"(advice) {SSHD}.command: sshd starts only by its absolute path"
ENDS = f"(advice) {SSHD}.command: sshd {{}} ends after one connection"
LEAVES = f"(advice) {SSHD}.command: sshd goes to the background and the container ends"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/usr/sbin/sshd", "-De"], []),
        (["/usr/sbin/sshd", "-oPort=22", "-f", "/c", "-D"], []),
        (["/usr/sbin/sshd", "-t"], []),
        (["tini", "--", "/usr/sbin/sshd", "-D"], []),
        (["bash", "-c", "/usr/sbin/sshd -De >> /log 2>&1"], []),
        (["bash", "-c", "/usr/sbin/sshd -D || exit 1"], []),
        (["bash", "-c", "/usr/sbin/sshd 2>&1 && sleep infinity"], []),
        (["bash", "-c", "/usr/sbin/sshd || exit 1; sleep infinity"], []),
        (["bash", "-c", "/usr/sbin/sshd -D & wait"], []),
        (["bash", "-c", "/usr/sbin/sshd || { exit 1; }; sleep infinity"], []),
        (["bash", "-c", "/usr/sbin/sshd -D &\nwait $!\n"], []),
        (["bash", "-c", "$SSHD_HOME/sshd -D"], []),
        (["bash", "-c", "cat > /c <<EOF\nsshd\nEOF\n/usr/sbin/sshd -D"], []),
        (["bash", "-c", "/usr/sbin/sshd; sleep infinity"], []),
        (["bash", "-c", "mkdir -p /run/sshd\n/usr/sbin/sshd -p 2222 \\\n  -D\n"], []),
        (["bash", "-c", "/usr/sbin/sshd $OPTIONS"], []),
        (["bash", "-c", "$(which sshd) -D"], []),
        (["bash", "-c", "which sshd; pgrep sshd || /usr/sbin/sshd -D"], []),
        (["bash", "-c", "case $1 in\n  sshd) ;;\nesac; sleep infinity"], []),
        (["bash", "-c", "kubectl exec sshd; sleep infinity"], []),
        (["bash", "-c", "# keys; sshd reads them\nexec /usr/sbin/sshd -De  # sshd"], []),
        (["bash", "-c", "/usr/sbin/sshd -De", "sshd"], []),
        (["bash", "-c", "PRIV=/run/sshd\nmkdir -p $PRIV\n/usr/sbin/sshd -De"], []),
        (["bash", "-c", "SSHD=/usr/sbin/sshd; $SSHD -De"], []),
        (["bash", "-c", "sudo -n /usr/sbin/sshd -De"], []),
        (["bash", "-c", "/usr/sbin/sshd  # in the background"], [LEAVES]),
        (["sshd", "-De"], [BY_NAME]),
        (["bash", "-c", "exec sshd -D"], [BY_NAME]),
        (["bash", "-lc", "mkdir -p /run/sshd && sshd -D"], [BY_NAME]),
        (["sh", "-c", "mkdir -p /run/sshd\n  ./sshd -D"], [BY_NAME]),
        (["sh", "-c", "if true; then sshd; fi; sleep infinity"], [BY_NAME]),
        (["/usr/sbin/sshd"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd"], [LEAVES]),
        (["bash", "-ec", "mkdir -p /run/sshd && /usr/sbin/sshd -e;\n"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd 2>&1"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd -e > $LOG"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd || sleep infinity"], [LEAVES]),
        (["bash", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -D &\n"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd -De &> /log &"], [LEAVES]),
        (["tini", "--", "/usr/sbin/sshd"], [LEAVES]),
        (["bash", "-c", "/usr/sbin/sshd && echo started\nexit 0"], [LEAVES]),
        (["env", "A=B", "sshd", "-D"], [BY_NAME]),
        (["sh", "-c", "sudo sshd -D"], [BY_NAME]),
        (["sh", "-c", "if true; then gosu root sshd -D; fi"], [BY_NAME]),
        (["sh", "-c", "gosu root /usr/sbin/sshd"], [LEAVES]),
        (["busybox", "sh", "-c", "sshd -D"], [BY_NAME]),
        (["bash", "-c"], []),
        (["/usr/sbin/sshd", "-d"], [ENDS.format("-d")]),
        (["bash", "-c", "mkdir -p /run/sshd && /usr/sbin/sshd -Ddd"], [ENDS.format("-Ddd")]),
    ],
)
def test_sshd_by_name_or_in_the_background_is_reported(command: list[str], expected: list[str]) -> None:
    assert as_texts(violations(ID, {f"{WORKER}.command": command})) == expected


@pytest.mark.parametrize(
    "script", ["sshd{}x\n", "{};sshd -D{}x", "/usr/sbin/sshd{}\n" * 2 + "x", "a=b{}" * 2 + "sshd x"]
)
def test_script_with_many_blanks_is_checked_quickly(script: str) -> None:
    blanks = " " * 300_000
    assert len(violations(ID, {f"{WORKER}.command": ["sh", "-c", script.replace("{}", blanks)]})) <= 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["sshd"], []),  # the entry point may be `case $1 in sshd) exec /usr/sbin/sshd -D`
        (["bash", "-c", "/usr/sbin/sshd"], [LEAVES.replace("command", "args")]),
        (["bash", "-c", "sshd -D"], [BY_NAME.replace("command", "args")]),
    ],
)
def test_sshd_in_args_is_reported_only_if_a_shell_runs_it(args: list[str], expected: list[str]) -> None:
    assert as_texts(violations(ID, {f"{WORKER}.args": args})) == expected


@pytest.mark.parametrize(
    ("script", "fix"),
    [
        ("/usr/sbin/sshd", "Add -D."),
        ("/usr/sbin/sshd -D &", "Remove the &."),
        ("/usr/sbin/sshd &", "Add -D, no &."),
    ],
)
def test_fix_keeps_sshd_in_the_foreground(script: str, fix: str) -> None:
    [violation] = violations(ID, {f"{WORKER}.command": ["sh", "-c", script]})
    assert violation.fix == fix
    assert violation.fix in Finding(ID, violation).warning


def of_volume(*roles: str, **source: Any) -> dict[str, Any]:
    """Changes that mount a volume at /v in these roles."""
    volume = {"name": "v"} | source
    return {f"{role}.template.spec.volumes": [volume] for role in roles} | {
        f"{role}.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": "/v/"}] for role in roles
    }


WORKER_POD = "spec.mpiReplicaSpecs[Worker].template.spec"
SCRIPT = {"configMap": {"name": "v"}}
CLAIM = {"persistentVolumeClaim": {"claimName": "v"}}
NOT_EXECUTABLE = f"(advice) {WORKER_POD}.volumes: /v/run.sh is not executable"
ONLY_HERE = f"(advice) {WORKER_POD}.containers[0].volumeMounts: /v/{{}} is mounted only in the launcher"


@pytest.mark.parametrize(
    ("command", "volume", "expected"),
    [
        ("mpirun -np 4 /v/run.sh", of_volume("Launcher", "Worker", **SCRIPT), [NOT_EXECUTABLE]),
        ("mpirun -np 4 bash /v/run.sh", of_volume("Launcher", "Worker", **SCRIPT), []),
        (
            "mpirun -np 4 /v/run.sh",
            of_volume("Launcher", "Worker", configMap={"name": "v", "defaultMode": 0o755}),
            [],
        ),
        ("mpirun -np 4 /v/run.sh", of_volume("Launcher", "Worker", **CLAIM), []),
        ("mpirun -np 4 /v/run.sh", of_volume("Launcher", **CLAIM), [ONLY_HERE.format("run.sh")]),
        ("mpirun -np 4 python /v/t.py", of_volume("Launcher", **CLAIM), [ONLY_HERE.format("t.py")]),
        ("mpirun -np 4 python t.py /v/data", of_volume("Launcher", **CLAIM), []),
        ("mpirun -np 4 python /v/t.py", of_volume("Worker", **CLAIM), []),
        ("mpirun -np 4 python /v/t.py", of_volume("Launcher", emptyDir={}), [ONLY_HERE.format("t.py")]),
        (
            "mpirun -np 4 python /v/t.py",
            of_volume("Launcher", "Worker", emptyDir={}),
            [f"(advice) {WORKER_POD}.volumes: /v/t.py is in an empty volume"],
        ),
        (
            "mpirun -np 4 python /v/t.py",
            of_volume("Worker", emptyDir={}) | {"Worker.template.spec.initContainers": [{"name": "clone"}]},
            [],
        ),
        (
            "mpirun -np 4 python /v/t.py",
            of_volume("Worker", emptyDir={}) | {f"{WORKER}.command": ["sh", "-c", "get /v; /usr/sbin/sshd -De"]},
            [],
        ),
        (
            "mpirun -np 4 python /v/t.py",
            of_volume("Worker", emptyDir={}) | {f"{WORKER}.lifecycle": {"postStart": {"exec": {"command": ["get"]}}}},
            [],
        ),
    ],
)
def test_program_that_workers_cannot_execute_from_a_volume_is_reported(
    command: str, volume: Any, expected: list[str]
) -> None:
    assert as_texts(violations(ID, {f"{LAUNCHER}.command": command.split(), **volume})) == expected


@pytest.mark.parametrize(
    ("script", "joined"),
    [
        ("set -e export NCCL_DEBUG=INFO cd /work mpirun -np 4 python train.py\n", True),
        ("set -euo pipefail cd /work && mpirun -np 4 train", True),
        ("cd /work mpirun -np 4 train", True),
        ("set -e; export A=B C=D; cd /work && mpirun -np 4 train", False),
        ("set -e\ncd /work\nmpirun -np 4 train", False),
    ],
)
def test_commands_whose_line_ends_are_lost_are_reported(script: str, joined: bool) -> None:
    expected = [f"(advice) {WHERE}.command: several commands became one"] if joined else []
    assert as_texts(check(["bash", "-c", script])) == expected


@pytest.mark.parametrize(
    ("command", "executable"),
    [
        (["/v/run.sh"], False),
        (["tini", "--", "/v/run.sh", "-x"], False),
        (["bash", "-c", "/v/run.sh train"], False),
        (["bash", "/v/run.sh"], True),
        (["bash", "-c", ". /v/run.sh"], True),
    ],
)
def test_command_from_a_config_map_without_execute_mode_is_reported(command: list[str], executable: bool) -> None:
    expected = [] if executable else [NOT_EXECUTABLE.replace("Worker", "Launcher")]
    assert as_texts(violations(ID, of_volume("Launcher", **SCRIPT) | {f"{LAUNCHER}.command": command})) == expected
    mode = {"configMap": {"name": "v", "defaultMode": 0o755}}
    assert violations(ID, of_volume("Launcher", **mode) | {f"{LAUNCHER}.command": command}) == []


def test_launcher_without_a_container_is_left_to_the_rule_upstream_contract() -> None:
    assert violations(ID, {"Launcher.template": {}}) == []


def test_fix_names_only_the_first_parts_of_a_long_word() -> None:
    [violation] = violations(ID, {f"{LAUNCHER}.command": ["mpirun", "-np" + " 4" * 50_000, "train"]})
    assert violation.fix == 'Split it: "-np"' + ', "4"' * 49 + ", ..."


def test_every_container_is_checked() -> None:
    one = {"name": "x", "command": ["sleep 1"]}
    result = violations(ID, {f"{WORKER}.command": ["/usr/sbin/sshd -De"], "Worker.template.spec.initContainers": [one]})
    path = "spec.mpiReplicaSpecs[Worker].template.spec"
    assert [each.path for each in result] == [f"{path}.containers[0].command", f"{path}.initContainers[0].command"]


@pytest.mark.parametrize(
    ("command", "implementation", "fault", "fix"),
    [
        ("mpirun -np eight train", "OpenMPI", no_number("-np eight"), "Set -np to 8."),
        ("mpirun -n 4x train", "OpenMPI", no_number("-n 4x"), "Set -n to 8."),
        ("mpirun -np=+2 train", "OpenMPI", no_number("-np +2"), "Set -np to 8."),
        ("mpirun -np 99999999999 train", "OpenMPI", no_number("-np 99999999999"), "Set -np to 8."),
        ("/opt/intel/bin/mpirun -np -1 train", "OpenMPI", no_number("-np -1"), "Set -np to 8."),
        ("mpirun -np -1 train", "MPICH", no_number("-np -1"), "Set -np to 8."),
        ("mpiexec -n 0 train", "Intel", no_number("-n 0", program="mpiexec"), "Set -n to 8."),
        ("horovodrun -np many train", "OpenMPI", no_number("-np many", program="horovodrun"), "Set -np to 8."),
    ],
)
def test_invalid_number_of_ranks_is_reported(command: str, implementation: str, fault: str, fix: str) -> None:
    violation = only(command.split(), implementation=implementation)
    assert as_texts([violation]) == [f"(advice) {WHERE}.command: {fault}"]
    assert violation.fix == fix


def test_negative_number_of_ranks_in_a_script_causes_a_warning() -> None:
    violation = only(["sh", "-c"], ["mpirun -np -1 train"])
    assert as_texts([violation]) == [f"(advice) {WHERE}.args: {no_number('-np -1')}"]


def test_negative_number_of_ranks_for_open_mpi_is_rejected() -> None:
    violation = only(["mpirun", "--allow-run-as-root", "-np", "-1", "train"])
    assert as_texts([violation]) == [f"{WHERE}.command: {no_number('-np -1', '')}"]
    assert violation.fix == "Set -np to 8."


def test_option_and_value_in_one_word_are_rejected() -> None:
    violation = only(["mpirun", "-np 4", "train"])
    assert as_texts([violation]) == [f'{WHERE}.command: "-np 4" is one word, not an option']
    assert violation.fix == 'Split it: "-np", "4".'
    violation = only(["mpiexec", "-n 4", "train"], implementation="MPICH")
    assert violation.advisory


def test_fix_suggests_no_number_of_ranks_without_workers() -> None:
    [violation] = run(ID, changed({"Worker": REMOVE, f"{LAUNCHER}.command": ["mpirun", "-np", "x", "train"]}))
    assert violation.fix == "Write how many ranks to start."


def test_windows_program_with_a_blank_is_accepted() -> None:
    command = {f"{WORKER}.command": ["C:\\Program Files\\x.exe"], "Worker.template.spec.os": {"name": "windows"}}
    assert violations(ID, command) == []


OF_HYDRA, OF_OPEN_MPI = "Set it to Intel or MPICH, or remove", "Set it to OpenMPI, or remove"


@pytest.mark.parametrize(
    ("command", "implementation", "options", "fix"),
    [
        ("mpirun -genv A=B -np 2 x", "OpenMPI", "-genv", OF_HYDRA),
        ("mpiexec -ppn 4 x", "OpenMPI", "-ppn", OF_HYDRA),
        ("mpirun -np 2 -x A x", "Intel", "-x", OF_OPEN_MPI),
        (
            "mpirun -np 2 -x A -x B --mca btl tcp,self --oversubscribe x -mca",
            "MPICH",
            "-x, --mca, --oversubscribe",
            OF_OPEN_MPI,
        ),
        (
            "mpirun -genv A=B -ppn 2 --launcher=ssh -env A B -rr x",
            "OpenMPI",
            "-genv, -ppn, --launcher, -env, -rr",
            OF_HYDRA,
        ),
        ("mpirun --allow-run-as-root x", "MPICH", "--allow-run-as-root", OF_OPEN_MPI),
    ],
)
def test_option_of_another_mpi_is_reported(command: str, implementation: str, options: str, fix: str) -> None:
    words = command.split()
    (violation,) = check(words, None, implementation)
    fault = f"{words[0]} of {implementation} has no {options}"
    assert as_texts([violation]) == [f"(advice) spec.mpiImplementation: {fault}"]
    assert violation.fix == f"{fix} {'them' if ',' in options else 'that'}."
    assert fault in Finding(ID, violation).warning


@pytest.mark.parametrize(
    ("image", "implementation", "name"),
    [
        ("mpioperator/mpi-pi:intel", "OpenMPI", "Intel"),
        ("registry.example.com/mirror/mpioperator/mpich:v0.6", "OpenMPI", "MPICH"),
        ("mpioperator/mpi-pi:openmpi", "MPICH", "OpenMPI"),
    ],
)
def test_image_with_another_mpi_is_reported(image: str, implementation: str, name: str) -> None:
    container = "Launcher.template.spec.containers.0"
    changes = {"spec.mpiImplementation": implementation, f"{container}.image": image}
    job = changes | {f"{container}.command": ["mpirun", "-n", "2", "x"]}
    (violation,) = violations(ID, job)
    fault = f"the image has mpirun of {name}, which finds no workers then"
    assert as_texts([violation]) == [f"(advice) spec.mpiImplementation: {fault}"]
    assert violation.fix == f"Set it to {name}."
    assert fits_a_warning(ID, violation)
    assert violations(ID, job | {"spec.mpiImplementation": name}) == []
    assert violations(ID, changes | {f"{container}.command": ["/run.sh"]}) == []


@pytest.mark.parametrize(
    ("command", "implementation"),
    [
        ("mpiexec.hydra -genv A B -n 2 x", "OpenMPI"),
        ("orterun -x A -np 2 x", "MPICH"),
        ("horovodrun -x A -np 2 x", "OpenMPI"),
        ("mpirun -N 2 x", "MPICH"),
        ("mpirun --brand-new x", "MPICH"),
        ("mpirun -np 2 x -genv A", "OpenMPI"),
    ],
)
def test_option_that_the_command_or_its_program_may_have_is_accepted(command: str, implementation: str) -> None:
    assert check(command.split(), None, implementation) == []


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("-x A", "Write -genv NAME VALUE for -x NAME=VALUE."),
        ("--mca btl_tcp_if_include eth0", None),
        ("-mca a b --mca c d", None),
    ],
)
def test_fix_removes_options_that_the_mpi_of_the_image_lacks(option: str, fix: str | None) -> None:
    changes = {
        "spec.mpiImplementation": "Intel",
        f"{LAUNCHER}.image": "intel/oneapi-hpckit:2024.2",
        f"{LAUNCHER}.command": ["mpirun", "-np", "2", *option.split(), "x"],
    }
    (violation,) = violations(ID, changes)
    fix = fix or f"Remove {option.replace(' --', ', --')}."
    assert (violation.path, violation.fix) == (f"{WHERE}.command", fix)


GPUS = {f"{WORKER}.resources": {"limits": {"nvidia.com/gpu": 4}}}


@pytest.mark.parametrize(
    ("command", "fault", "fix"),
    [
        ("mpirun -np 4 /osu/pt2pt/osu_latency", "osu_latency needs exactly 2 ranks", "Set -np to 2."),
        ("mpirun -n 4 osu_bibw D D", "osu_bibw needs exactly 2 ranks", "Set -n to 2."),
        ("mpirun -np 8 gmx_mpi mdrun -ntmpi 4 -ntomp 2", "only GROMACS without MPI has -ntmpi", "Remove -ntmpi 4."),
        (
            "mpirun -np 8 ./hpl.sh --nprow 4 --npcol=4",
            "4 x 4 ranks, but -np 8",
            "Write --nprow 2 --npcol 4.",
        ),
        ("mpirun --mca plm slurm -np 8 x", "a pod has no slurm", "Remove --mca plm slurm."),
        (
            "mpirun -np 8 -mca btl self -mca plm_rsh_agent /etc/mpi/kubexec.sh x",
            "a pod has no /etc/mpi/kubexec.sh",
            "Remove -mca plm_rsh_agent.",
        ),
        (
            "mpirun -np 2 -N 1 torchrun --nproc_per_node=8 t.py",
            "8 processes for 4 GPUs of a worker",
            "Write --nproc_per_node=4.",
        ),
    ],
)
def test_arguments_with_which_the_program_fails_are_reported(command: str, fault: str, fix: str) -> None:
    for argv in (command.split(), ["bash", "-c", command]):
        (violation,) = violations(ID, {f"{LAUNCHER}.command": argv} | GPUS)
        assert as_texts([violation]) == [f"(advice) {WHERE}.command: {fault}"]
        assert violation.fix == fix
        assert Finding(ID, violation).warning.endswith(f"{fix} [{ID}]")


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -np 2 osu_latency",
        "mpirun osu_latency",
        "mpirun -np 4 osu_mbw_mr",
        "mpirun -np 8 gmx_mpi mdrun -ntmpi 0",
        "mpirun -np 8 ./hpl.sh --nprow 2 --npcol 4",
        "mpirun --mca plm rsh -np 8 x",
        "mpirun --mca plm ^slurm -np 8 x",
        "mpirun --mca plm_rsh_agent /opt/agent.sh -np 8 x",
        "mpirun -np 2 torchrun --nproc-per-node 4 t.py",
        "mpirun -np 2 torchrun --nproc-per-node gpu t.py",
    ],
)
def test_arguments_that_the_program_may_have_are_accepted(command: str) -> None:
    assert violations(ID, {f"{LAUNCHER}.command": command.split()} | GPUS) == []


@pytest.mark.parametrize(
    ("name", "value", "absent"),
    [
        ("OMPI_MCA_plm", "slurm", "slurm"),
        ("OMPI_MCA_plm", "rsh", ""),
        ("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh", "/etc/mpi/kubexec.sh"),
        ("OMPI_MCA_orte_rsh_agent", "/etc/mpi/kubexec.sh -v", "/etc/mpi/kubexec.sh"),
        ("PRTE_MCA_plm_ssh_agent", "/etc/mpi/kubexec.sh", "/etc/mpi/kubexec.sh"),
        ("OMPI_MCA_plm_rsh_agent", "/etc/mpi/mounted.sh", ""),
        ("OMPI_MCA_plm_rsh_agent", "ssh", ""),
        ("AGENT", "/etc/mpi/kubexec.sh", ""),
    ],
)
def test_variable_that_names_a_program_that_no_pod_has_is_reported(name: str, value: str, absent: str) -> None:
    changes = {
        f"{LAUNCHER}.command": ["mpirun", "-np", "8", "x"],
        f"{LAUNCHER}.env": [{"name": name, "value": value}],
        f"{LAUNCHER}.volumeMounts": [{"name": "agent", "mountPath": "/etc/mpi/mounted.sh", "subPath": "agent"}],
    }
    expected = [f"(advice) {WHERE}.env[0]: a pod has no {absent}"] if absent else []
    assert as_texts(violations(ID, changes)) == expected


def test_processes_are_not_compared_with_accelerators_of_several_cores() -> None:
    devices = {f"{WORKER}.resources": {"limits": {"aws.amazon.com/neuron": 4}}}
    command = ["mpirun", "-np", "2", "torchrun", "--nproc_per_node=8", "t.py"]
    assert violations(ID, {f"{LAUNCHER}.command": command} | devices) == []


ELASTIC = "horovodrun -np 4 --host-discovery-script"


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (
            ["mpirun", "-np", "4", "torchrun", "--node_rank=$OMPI_COMM_WORLD_RANK"],
            "only ranks have OMPI_COMM_WORLD_RANK",
        ),
        (["mpirun", "-np", "4", "t", "$(OMPI_COMM_WORLD_RANK)"], "only ranks have OMPI_COMM_WORLD_RANK"),
        (["bash", "-c", "mpirun -np 4 t --rank ${PMI_RANK}"], "only ranks have PMI_RANK"),
        (["bash", "-c", "mpirun -np 4 t --rank $SLURM_PROCID"], "no pod has SLURM_PROCID"),
        (["mpirun", "-np", "4", "bash", "-c", "t $OMPI_COMM_WORLD_RANK"], ""),
        (["bash", "-c", "mpirun -np 4 bash -c 't $OMPI_COMM_WORLD_RANK'"], ""),
        (["bash", "-c", "mpirun -np 4 /opt/wrap \\$OMPI_COMM_WORLD_RANK"], ""),
        (["bash", "-c", "mpirun -np 4 /opt/wrap 'exec t $OMPI_COMM_WORLD_RANK'"], ""),
        (f"{ELASTIC} /etc/mpi/discover_hosts.sh --slots-per-host 2 t".split(), ""),
        (f"{ELASTIC} /etc/mpi/discover_hosts.sh t".split(), "the operator's script names no slots"),
        (f"{ELASTIC} /etc/mpi/discover-hosts.sh t".split(), "the operator mounts no /etc/mpi/discover-hosts.sh"),
    ],
)
def test_variable_or_script_that_the_launcher_lacks_is_reported(command: list[str], fault: str) -> None:
    expected = [f"(advice) {WHERE}.command: {fault}"] if fault else []
    assert as_texts(check(command)) == expected


@pytest.mark.parametrize(
    ("role", "command", "endless"),
    [
        ("Launcher", ["sh", "-c", "tail -F /out/log"], True),
        ("Launcher", ["sleep", "infinity"], True),
        ("Launcher", ["sh", "-c", "sleep infinity & wait-for-mpirun"], False),
        ("Launcher", ["sh", "-c", "tail -f /log & while [ ! -f /done ]; do sleep 1; done"], False),
        ("Launcher", ["sh", "-c", "tail -f /log | sed '/DONE/ q'"], False),
        ("Launcher", ["timeout", "3600", "tail", "-F", "/log"], False),
        ("Launcher", ["sh", "-c", "(wait-for-end; kill 1) & exec sleep infinity"], False),
        ("Worker", ["sleep", "infinity"], False),
    ],
)
def test_container_that_keeps_the_launcher_from_ending_is_reported(
    role: str, command: list[str], endless: bool
) -> None:
    containers = f"{role}.template.spec.containers"
    first = changed()["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]
    faults = as_texts(violations(ID, {containers: [first, {"name": "log", "command": command}]}))
    assert [fault.rpartition(" never ends")[1] for fault in faults] == ([" never ends"] if endless else [])


@pytest.mark.parametrize(("program", "reported"), [("/vs/run.sh", True), ("/V/run.sh", True), ("/opt/run.sh", False)])
def test_program_next_to_a_mount_with_a_similar_name_is_reported(program: str, reported: bool) -> None:
    faults = as_texts(violations(ID, of_volume("Launcher", **CLAIM) | {f"{LAUNCHER}.command": [program]}))
    folder = program.removesuffix("/run.sh")
    assert faults == ([f"(advice) {WHERE}: no volume is mounted at {folder}"] if reported else [])


@pytest.mark.parametrize(
    ("implementation", "command", "fix"),
    [
        ("MPICH", "mpirun -np 8 --map-by ppr:4:node lmp", "Write -ppn 4 instead of --map-by."),
        ("MPICH", "mpirun -np 8 --map-by node lmp", None),
        ("OpenMPI", "mpirun -np 8 --map-by ppr:4:node lmp", None),
    ],
)
def test_value_of_map_by_that_hydra_lacks_is_reported(implementation: str, command: str, fix: str | None) -> None:
    job = {"spec.mpiImplementation": implementation, f"{LAUNCHER}.command": command.split()}
    assert [violation.fix for violation in violations(ID, job)] == ([fix] if fix else [])


@pytest.mark.parametrize(("devices", "reported"), [("-1", True), ("0,1", False)])
def test_variable_for_ranks_that_hides_all_gpus_is_reported(devices: str, reported: bool) -> None:
    command = ["mpirun", "-np", "4", "-x", f"CUDA_VISIBLE_DEVICES={devices}", "train"]
    resources = {f"{WORKER}.resources": {"limits": {"nvidia.com/gpu": 2}}}
    faults = as_texts(violations(ID, resources | {f"{LAUNCHER}.command": command}))
    assert faults == ([f"(advice) {WHERE}.command: CUDA_VISIBLE_DEVICES=-1 hides all GPUs"] if reported else [])


def test_many_variables_without_a_shell_are_judged_in_linear_time() -> None:
    began = time.thread_time()
    assert check(["mpirun", "-np", "8", *["$HOME"] * 9_000])
    assert time.thread_time() - began < 0.4
