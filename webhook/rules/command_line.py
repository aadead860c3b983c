"""Commands of containers can start their program, and mpirun gets a number of ranks and a program.

No shell reads a container's `command`. With `command: ["mpirun -np 4 train"]` the node looks for a program with this
whole text as its name. With `["mpirun", "-np 4", "train"]` mpirun rejects the word `-np 4`. Without a shell, `cd`,
`export`, `A=B` in front of a program, `&&`, `|`, `>` and `$NP` have no effect. A shell without `-c` reads a command
line, or `mpirun`, as the name of a script. With `["bash", "-c", "mpirun", "-np", "4", "train"]` bash runs `mpirun`
alone: only the word after `-c` is the script. YAML joins the lines of a script after `>`, and `cd /work mpirun` starts
no mpirun. A script that ends with `&` ends at once, and its container ends too.

`$NP` in a script is empty if neither the script nor `env` sets it. Kubernetes replaces `$(NP)` by the container's
variable `NP`. If the container has no such variable, a shell runs a program `NP`.

The words in `args` without a `command` are checked only if they begin with a shell. Programs that only start another
program are skipped, such as `env A=B`, `tini --`, `timeout 1h`, `conda run -n NAME` and `su USER -c`.

mpirun needs a program after its options. If a line of a script lacks its `\\` at the end, the next line runs once, on
the launcher. `mpirum`, `-pn` and an option with the long dash of a text editor are misspelt. `srun` belongs to Slurm.
mpirun cannot start `cd`.

mpirun fails with an option of an MPI other than `mpiImplementation`: `-x` and `--allow-run-as-root` belong to Open MPI,
`-genv`, `-ppn` and `mpiexec.hydra` to Intel MPI and MPICH. If the image has another MPI, such as upstream's
`mpi-pi:intel`, all ranks run on the launcher.

sshd must be called by its absolute path, because it starts itself again for each connection. Without `-D`, or followed
by `&`, sshd runs in the background, and the container ends unless another program follows. `ssh-keygen` cannot write
the job's key, because the operator mounts the key read-only.

`-np eight` and `-np -1` are not numbers of ranks. Open MPI 4 rejects both; other MPIs fail or start an arbitrary number
of ranks. `-np 0` means a rank for each slot with Open MPI, and is an error with other MPIs.

Some arguments make the program fail. The point-to-point tests of OSU, such as `osu_latency`, need exactly two ranks.
`--nprow` times `--npcol` of HPL cannot exceed the number of ranks. `torchrun --nproc_per_node` cannot exceed the GPUs
of a worker. Only GROMACS without MPI has `-ntmpi`. `--mca plm slurm` needs Slurm, which no pod has. Only
Open MPI has `--map-by ppr:4:node`. An elastic job of Horovod needs `--slots-per-host`, because the operator's
`/etc/mpi/discover_hosts.sh` names no slots. `plm_rsh_agent`
with `/etc/mpi/kubexec.sh` needs a file that only v1 of the operator provides.

Only ranks have variables such as `OMPI_COMM_WORLD_RANK`: a shell that mpirun starts can use them, the launcher's shell
cannot. A second container of the launcher must end too, or the job never does.

The program that mpirun starts, or its script, must not be in a volume that only the launcher mounts, or in an
`emptyDir` of the workers that no init container fills. A program in a ConfigMap must be executable, also if it is the
container's command. `sshd -d` ends after one connection. A pod cannot run `docker` or `singularity`, and has no
variables of Slurm or PBS. If `--epochs 3` is one word of the command, Python, deepspeed and torchrun get it as one
argument.

The job is rejected if the launcher's command is an `mpirun` of Open MPI with a negative number of ranks, or with an
option and its value in one word. Other faults are warnings, because the image is unknown.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import normpath
from typing import Final

from webhook.api import mpirun, operator_env, programs, shell, sshd
from webhook.api.mpijob import IMPLEMENTATIONS, LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun import Invocation
from webhook.api.mpirun_options import HOROVODRUN, HOSTS, HYDRA, NEAR_OPTION, OPEN_MPI, Dialect
from webhook.api.pod import Container, PodTemplate, Volume
from webhook.api.shell import Command
from webhook.kit.advice_bounds import Span
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict import devices
from webhook.predict.open_mpi import is_all_that_runs
from webhook.predict.sizes import Sizes
from webhook.rules import Violation, rule, shortened
from webhook.rules.limits import (
    MAX_LISTED_WORDS,
    MAX_SHOWN_ARGUMENTS_CHARACTERS,
    MAX_SHOWN_WORDS_CHARACTERS,
    MAX_SPLIT_CHARACTERS,
)

_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
# A shell expands these, and Kubernetes replaces variables after `$`.
_EXPANDED: Final = re.compile(r"[$`]")
_BLANKS: Final = " \t\r\n"
# An argument that is only a reference. The interpreters below use `$(...)` themselves.
_IS_REFERENCE: Final = re.compile(r"(?:-[\w.-]++=)?\$\([\w.-]++\)")
_INTERPRETERS: Final = frozenset(("awk", "csh", "gawk", "gmake", "make", "mawk", "nawk", "perl", "ruby", "tcsh"))
# Text in single quotes, in which a shell replaces nothing; the group matches text in double quotes.
_LITERAL: Final = re.compile(r"""("(?>(?:[^"\\]++|\\.)*)")|'[^']*+'""", re.DOTALL)
# Variables that a shell or mpirun sets.
_OF_SHELLS: Final = re.compile("HOME|HOSTNAME|PATH|PWD|USER|(?:OMPI|PMIX?)_.*")
# Variables that Kubernetes adds for the namespace's Services.
_OF_SERVICES: Final = re.compile(r"_SERVICE_HOST\Z|_SERVICE_PORT|_PORT(?:_|\Z)")
_PROGRAMS: Final = mpirun.LAUNCHERS | {"sshd"}
# A script that reads its arguments matches one of two patterns. The first pattern is much faster.
_ARGUMENT: Final = re.compile(r"\$\{?[@*#!\d]")
_POSITIONAL: Final = re.compile(r"\b(?:shift|getopts|source)\b|\bfor\s++\w++\s*+(?:;|do\b)|(?:^|[\n;&|])[ \t]*+\.\s")
# Images with a known MPI.
_IMAGE: Final = re.compile(r"(?:^|/)(?:mpioperator/(?:mpi-pi:)?(openmpi|intel|mpich)|intel/(?:oneapi-)?hpckit)\b")
_OF_EVERY_MPI: Final = frozenset(("mpirun", "mpiexec"))
# Options of Open MPI that some releases of MPICH have too.
_OF_SOME: Final = frozenset(("H", "N", "report-bindings"))
_OF_A_SHELL: Final = re.compile(r"(?:[.]|cd|export|set|source|ulimit|unset)(?=\s)|[A-Za-z_]\w*=\S*")
_OPERATORS: Final = frozenset(("&&", "||", "|", ">", ">>", "<", "2>&1", "&>", "&"))
_BUILT_IN: Final = frozenset(("cd", "export", "source"))
_POINT_TO_POINT: Final = re.compile(r"osu_(?:latency|bi?bw)(?:_\w+)?")
_GRID: Final = re.compile(r"--nprow[= ](\d{1,5}) --npcol[= ](\d{1,5})\b")
_THREADS: Final = re.compile(r"-ntmpi [1-9]\d*")
# A container with one of these commands never ends.
_ENDLESS: Final = re.compile(r"(?:exec )?(?:tail -[fF] (?!.*--pid)|sleep inf(?:inity)?\Z)")
_END_OF_COMMAND: Final = re.compile(r"[;&|\n]")
# Variables that only ranks have, or only jobs of a batch system.
_OF_RANKS: Final = re.compile(r"\$[({]?((?:OMPI_COMM_WORLD|PMI|PMIX|PBS|SLURM)_\w+)")
_SCHEDULERS: Final = ("alps", "lsf", "slurm", "tm")
_OF_OPERATOR: Final = mpirun.HOSTFILE.removesuffix("hostfile")
_DISCOVERY: Final = f"{_OF_OPERATOR}discover_hosts.sh"
_PER_RESOURCE: Final = re.compile(r"ppr:(\d+):\w+")
_PARAMETER: Final = re.compile(r"--?\w*mca (\w+) (\S+)")
# MCA parameters that name the program that connects to workers instead of ssh.
_AGENTS: Final = frozenset(("orte_rsh_agent", "plm_rsh_agent", "plm_ssh_agent"))
_OF_ENV: Final = {f"{prefix}_MCA_{name}": name for prefix in ("OMPI", "PRTE") for name in ("plm", *_AGENTS)}
_PER_NODE: Final = re.compile(r"(--nproc[-_]per[-_]node)[= ](\d{1,5})\b")
# Accelerators that have one device each. Neuron accelerators have several cores.
_GPUS: Final = ("amd.com/gpu", "nvidia.com/gpu")
_HIDES_GPUS: Final = "CUDA_VISIBLE_DEVICES=-1"
_OF_CONTAINERS: Final = re.compile(r"(apptainer|docker|podman|singularity) (?:exec|run)\b")
_DEBUGS: Final = re.compile(r"\s(-[46Deqr]*d\w*)")
_RUNS_SCRIPTS: Final = re.compile(r"python[\d.]*|accelerate|deepspeed|torchrun")
# A script with arguments, or an option with its value.
_WITH_ARGUMENTS: Final = re.compile(r"(?:\S+\.py|--?\w[\w-]*)(?: \S+)+")
# Commands without a separator between them, for example because `>` in YAML joins lines.
_JOINED: Final = re.compile(
    r"(?:\A|[;&|])\s*+(?:set -[^\s;&|]+(?: pipefail)?|cd [^\s;&|]+|export [A-Za-z_]\w*=[^\s;&|]*)"
    r" (?:cd|export|mpiexec|mpirun|set|source) "
)
# Usual values for `$0` of a script.
_NO_ARGUMENTS: Final = frozenset(("-", "--", "_"))

# A command that writes the SSH key, which the operator mounts read-only.
_MAKES_KEY: Final = re.compile(r"ssh-keygen\s(?![^;&|\n]*-[lyR])[^;&|\n]*?(/\S*)/id_rsa\b")
# (field of the container, fault, fix)
_Fault = tuple[str, str, str]


class Settings(RuleSettings):
    """No settings except the action: the image decides the names of programs."""


@rule("command-line", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    yield from _programs(job, ctx)
    if job.launcher is None or not job.launcher.template.containers:
        return
    launcher, calls = job.launcher.template.containers[0], job.mpirun_calls
    for call in calls:
        yield from _call(call, launcher, job, ctx)
    argv = () if calls or not launcher.command else shell.unwrapped(launcher.argv)
    if argv and (near := mpirun.NEAR_MPIRUN.search(shell.script(argv)[0] or argv[0])):
        fix = f"Write {'mpiexec' if 'x' in near[1] else 'mpirun'}."
        if near[1] in mpirun.OF_SCHEDULERS:
            fix = f"Write mpirun without its options. {_ranks('np', job, ctx)}"
        yield Violation(_place(launcher, near[1]), f"{near[1]} is not a program of MPI", fix, advisory=True)
    if any(call.program in _OF_EVERY_MPI and call.words for call in calls):
        for index, variable in enumerate(launcher.env or ()):
            parameter = _OF_ENV.get(variable.name)
            if parameter and (absent := _absent(parameter, variable.value or "", launcher)):
                field = f"{replica_path(LAUNCHER)}.template.spec.containers[0].env[{index}]"
                yield Violation(field, f"a pod has no {absent}", "Remove it.", advisory=True)
        has = _mpi_of(launcher)
        if has and has != job.spec.mpi_implementation:
            fault = f"the image has mpirun of {has}, which finds no workers then"
            yield Violation("spec.mpiImplementation", fault, f"Set it to {has}.", advisory=True)


def _absent(parameter: str, value: str, launcher: Container) -> str:
    """The program that the MCA parameter needs, if the launcher lacks it; otherwise empty.

    `/etc/mpi` has only the operator's files. The operator's v1 also had an agent there.
    """
    if parameter == "plm":
        return value if value in _SCHEDULERS else ""
    agent, own = value.partition(" ")[0], [mount.mount_path for mount in launcher.volume_mounts or ()]
    return shortened(agent) if parameter in _AGENTS and agent.startswith(_OF_OPERATOR) and agent not in own else ""


def _mpi_of(container: Container) -> str:
    """The implementation in the container's image; empty if it is unknown."""
    image = _IMAGE.search(container.image or "")
    return {"openmpi": "OpenMPI", "mpich": "MPICH"}.get(image[1], "Intel") if image else ""


def _programs(job: MPIJob, ctx: Context) -> Iterator[Violation]:
    for role, path, replica in job.replicas:
        if replica.template.spec is None or replica.template.spec.for_windows:
            continue
        for kind, index, container in replica.template.each_container:
            command = shell.command(container.argv)
            if kind == "containers" and index == 0 and container.command and command.words:
                program = (command.script or command.words[0]).lstrip().partition(" ")[0]
                yield from _executable(program, replica.template, path)
            sidecar = role == LAUNCHER and kind == "containers" and index > 0
            for field, fault, fix in (
                *_faults(container, command, kind, job),
                *(_substituted(container, command.script, role, job, ctx) if "$(" in command.script else ()),
                *(_endless(container, command.words) if sidecar else ()),
            ):
                yield Violation(f"{path}.template.spec.{kind}[{index}].{field}", fault, fix, advisory=True)


def _faults(container: Container, command: Command, kind: str, job: MPIJob) -> Iterator[_Fault]:
    text, script = " ".join(command.argv), command.script
    fault = _program(container, command, text, job)
    if fault is None and kind == "containers" and "ssh" in text:
        fault = _ssh(container, text, job)
    if fault:
        yield fault
    nested = _OF_CONTAINERS.search(text) if " exec " in text or " run " in text else None
    if nested and not any("docker" in (mount.mount_path or "") for mount in container.volume_mounts or ()):
        fix = "Put its image and its command into this container."  # a container has no socket of a daemon
        yield _field(container, nested[1]), f"a pod has no {nested[1]}", fix
    if " " in "".join(command.rest if script else command.words):
        yield from _with_blanks(container, command.words)
    if script and "\n" not in script.strip() and (joined := _JOINED.search(script)):
        yield _field(container, joined[0]), "several commands became one", "Write | instead of >, or && between them."


def _program(container: Container, command: Command, text: str, job: MPIJob) -> _Fault | None:
    program, script = command.program, command.script
    own = shell.unwrapped(container.command or ())
    if own and own[0] and own[0].split() != [own[0]]:
        short = len(own[0]) <= (MAX_SPLIT_CHARACTERS if container.args else MAX_SHOWN_WORDS_CHARACTERS)
        words = shell.word_list(own[0]) if short and container.command == own else ()
        fix = f"Write {json.dumps(words, ensure_ascii=False)}." if words else 'Put "sh", "-c" before it.'
        return "command", "is not split into words", fix if len(own) == 1 else "Write each of its words in quotes."
    if program not in shell.SHELLS:
        word, fix = _needs_shell(container.command, command.argv), 'Write all of it as one text after "bash", "-c".'
        if word and program in mpirun.LAUNCHERS and (inner := next(filter(_BUILT_IN.__contains__, command.words), "")):
            fix = f'Write the words from "{inner}" on as one text after "bash", "-c".'
        fix = "Remove the &." if word == "&" == command.argv[-1] else fix
        return ("command", f'"{shortened(word, 20)}" needs a shell', fix) if word else None
    if not script and (file := mpirun.taken_for_a_file(command.words, job.spec.mpi_implementation)):
        field = "command" if file in own else "args"
        what, fix = "the command line for a file", 'Put "-c" before it.'
        if " " not in file:
            what, fix = f"{shortened(file)} for a script", f"Start it without {program}."
        return field, f"{program} takes {what}", fix
    if script.rstrip().endswith("&") and re.search(r"(?<!&)&\s*\Z", shell.plain(script)) and "sshd" not in text:
        return _field(container, "&"), "the last command goes to the background and the container ends", "Remove the &."
    if command.rest and (rest := _lost_words(script, command.rest)):
        field = "command" if len(command.argv) - len(rest) < len(container.command or ()) else "args"
        fault = f'{program} ignores "{shortened(" ".join(rest), MAX_SHOWN_ARGUMENTS_CHARACTERS)}"'
        of_command = len(rest) == 1 and rest[0].partition(" ")[0].rpartition("/")[2] in _PROGRAMS
        return field, fault, "Join it to the text by &&." if of_command else "Add it to the text after -c."
    return None


def _endless(sidecar: Container, argv: Sequence[str]) -> Iterator[_Fault]:
    """A launcher ends only when all of its containers end."""
    text = (shell.script(argv)[0] or " ".join(argv)).rstrip()
    command = _END_OF_COMMAND.split(text)[-1].strip()
    if _ENDLESS.match(command) and "kill" not in text and "timeout" not in sidecar.argv:
        fix = "Make it an init container with restartPolicy: Always."
        yield _field(sidecar, command), f"{shortened(command, 20)} never ends, nor does the launcher", fix


def _with_blanks(container: Container, argv: Sequence[str]) -> Iterator[_Fault]:
    """Words that contain several arguments."""
    runs_script = False
    for before, word in pairwise(argv):
        runs_script = runs_script or _RUNS_SCRIPTS.fullmatch(before.rpartition("/")[2]) is not None
        of_option = before[:1] == "-" and " " not in before  # the value of an option may contain blanks
        if runs_script and not of_option and _WITH_ARGUMENTS.fullmatch(word):
            yield _field(container, word), f'"{shortened(word)}" is one word', _split(word)


def _split(word: str) -> str:
    """The fix for several words in one."""
    words = word.split()
    more = ", ..." if len(words) > MAX_LISTED_WORDS else "."
    return f"Split it: {', '.join(json.dumps(each, ensure_ascii=False) for each in words[:MAX_LISTED_WORDS])}{more}"


def _needs_shell(command: Sequence[str] | None, argv: Sequence[str]) -> str:
    """The first word that only a shell understands; empty if there is none."""
    if starts := _OF_A_SHELL.match(" ".join(command or ())):
        return starts[0]
    return "" if _OPERATORS.isdisjoint(argv) else next(filter(_OPERATORS.__contains__, argv))


def _substituted(container: Container, script: str, role: str, job: MPIJob, ctx: Context) -> Iterator[_Fault]:
    """`$(NAME)` without a variable NAME: the shell runs a program NAME instead."""
    if not any(map(str.isupper, shell.REFERENCE.findall(script))):
        return
    if container.env_from or shell.has_here_document(script):
        return
    plain = _LITERAL.sub(r"\1", shell.plain(script))
    for name in dict.fromkeys(filter(str.isupper, shell.REFERENCE.findall(plain))):
        if name in _named(container, role, job) or _OF_SERVICES.search(name) or f"{name}()" in plain:
            continue
        option = re.search(rf"\s-(np?)[ =]\$\({re.escape(name)}\)", plain)
        fix = _ranks(option[1], job, ctx) if option else "Add it, or correct the name."
        if _OF_SHELLS.fullmatch(name) or re.search(rf"(?:\A|[\n;&|]|export)\s*{re.escape(name)}=", plain):
            fix = f"Write ${name}."
        yield _field(container, f"$({name})"), f"there is no variable {shortened(name, 30)} in env", fix


def _named(container: Container, role: str, job: MPIJob) -> set[str]:
    return {variable.name for variable in container.env or ()}.union(operator_env.values(role, job))


def _lost_words(script: str, rest: Sequence[str]) -> Sequence[str]:
    """The words after a shell's script, if the script does not read them and they look like options or commands."""
    if not rest or _ARGUMENT.search(script) or _POSITIONAL.search(script):
        return ()
    words = script.split()
    if not words or words[0][0] == "$":
        return ()
    if any(word in _OPERATORS or (len(word) > 1 and word[0] == "-" and word not in _NO_ARGUMENTS) for word in rest):
        return rest
    name = rest[0].rpartition("/")[2]
    of_script = [word.rpartition("/")[2] for word in words]
    if len(rest) == 1 and (name in _NO_ARGUMENTS or name in shell.SHELLS or name in of_script):
        return ()
    # Each word may be a command with its arguments.
    started = {of_script[-1], *(word.partition(" ")[0].rpartition("/")[2] for word in rest)}
    return rest if len(words) == 1 or not started.isdisjoint(_PROGRAMS) else ()


def _ssh(container: Container, text: str, job: MPIJob) -> _Fault | None:
    made = _MAKES_KEY.search(text)
    if made and normpath(job.spec.ssh_auth_mount_path or "/").endswith(normpath(made[1])):
        return _field(container, "ssh-keygen"), "ssh-keygen fails: the job has keys", "Remove ssh-keygen."
    calls, last = sshd.calls(container)
    if not all(call.by_path for call in calls):
        return _field(container, "sshd"), "sshd starts only by its absolute path", "Write /usr/sbin/sshd."
    if last and (last.in_background or not last.in_foreground):
        fix = ("Remove the &." if last.in_foreground else "Add -D, no &.") if last.in_background else "Add -D."
        return _field(container, "sshd"), "sshd goes to the background and the container ends", fix
    if last and (debug := _DEBUGS.search(last.options)):
        return _field(container, "sshd"), f"sshd {debug[1]} ends after one connection", f"Replace {debug[1]} by -D."
    return None


def _call(call: Invocation, launcher: Container, job: MPIJob, ctx: Context) -> Iterator[Violation]:
    spoken = mpirun.dialect(call.program, job.spec.mpi_implementation)
    words = call.unread.split()
    if len(words) > 1 and words[0] in spoken.options:
        certain = spoken is OPEN_MPI and is_all_that_runs(launcher, call)
        fault = f'"{shortened(call.unread)}" is one word, not an option'
        yield Violation(_place(launcher, call.unread), fault, _split(call.unread), advisory=not certain)
    if near := NEAR_OPTION.fullmatch(call.unread or call.started):
        name = "np" if near[1] == "pn" else near[1]
        fix = f"Write {'-' if len(name) < 3 else '--'}{name}."
        yield Violation(_place(launcher, near[0]), f"{call.program} has no option {near[0]}", fix, advisory=True)
    other = HYDRA if spoken is OPEN_MPI else OPEN_MPI
    implementation = job.spec.mpi_implementation if call.unread and spoken is not HOROVODRUN else ""
    if implementation in IMPLEMENTATIONS and (foreign := _of_another(call, spoken, other)):
        those = "them" if len(foreign) > 1 else "that"
        of_every = call.program in _OF_EVERY_MPI
        may_be_wrong = of_every and _mpi_of(launcher) != implementation
        fault = f"{call.program}{f' of {implementation}' if of_every else ''} has no {shortened(', '.join(foreign))}"
        fix = f"Set it to {'Intel or MPICH' if other is HYDRA else 'OpenMPI'}, or remove {those}."
        if not may_be_wrong:
            mca = all(word.endswith("mca") for word in foreign)
            those = ", ".join(each[0] for each in _PARAMETER.finditer(" ".join(call.words))) if mca else those
            fix = f"Remove {those}." if spoken is mpirun.dialect("", implementation) else "Write mpirun."
            if "-x" in foreign and fix.startswith("Remove"):
                others = ", and remove the others" if len(foreign) > 1 else ""
                fix = f"Write -genv NAME VALUE for -x NAME=VALUE{others}."
        place = "spec.mpiImplementation" if may_be_wrong else _place(launcher, call.program)
        yield Violation(place, fault, fix, advisory=True)
    if call.starts_nothing and not _lost_words(*shell.script(shell.unwrapped(launcher.argv))):
        of_lines = any("\n" in word.strip().rpartition(call.program)[2] for word in launcher.argv)
        fix = "End each continued line with \\." if of_lines else "Add the program after the options."
        yield Violation(_place(launcher, call.program), f"{call.program} gets no program", fix, advisory=True)
    elif call.started in _BUILT_IN and not (call.without_shell and _needs_shell(launcher.command, launcher.argv)):
        fault, fix = f'{call.program} cannot start "{call.started}"', f"Start bash -c '{call.started} ...' with it."
        yield Violation(_place(launcher, call.started), fault, fix, advisory=True)
    elif " " in call.started and _is_command_line(call.started):
        fix = "Split it at its blanks." if call.without_shell else "Remove its quotes."
        fault = f'"{shortened(call.started, MAX_SHOWN_WORDS_CHARACTERS)}" is one word'
        yield Violation(_place(launcher, call.started), fault, fix, advisory=True)
    for word, fault, fix in _arguments(call, spoken, launcher, job, ctx):
        yield Violation(_place(launcher, word), fault, fix, advisory=True)
    if call.started in call.words:
        yield from _mounted(call, job, ctx)
    if call.ranks is None or "$" in "".join(call.words):
        yield from _values(call, launcher, job, ctx)


def _arguments(call: Invocation, spoken: Dialect, launcher: Container, job: MPIJob, ctx: Context) -> Iterator[_Fault]:
    """(word, fault, fix) of arguments with which the started program fails, or mpirun cannot start its daemons."""
    text, program, ranks = " ".join(call.words), call.started.rpartition("/")[2], call.ranks
    if ranks and ranks != 2 and _POINT_TO_POINT.fullmatch(program):
        yield program, f"{program} needs exactly 2 ranks", f"Set -{_option_of_ranks(call, spoken)} to 2."
    if (grid := _GRID.search(text)) and ranks and int(grid[1]) * int(grid[2]) > ranks:
        rows = max(number for number in range(1, math.isqrt(ranks) + 1) if not ranks % number)
        fault = f"{grid[1]} x {grid[2]} ranks, but -{_option_of_ranks(call, spoken)} {ranks}"
        yield "--nprow", fault, f"Write --nprow {rows} --npcol {ranks // rows}."
    if program.startswith("gmx_mpi") and (threads := _THREADS.search(text)):
        yield "-ntmpi", "only GROMACS without MPI has -ntmpi", f"Remove {threads[0]}."
    for parameter in _PARAMETER.finditer(text) if call.options and ("plm" in text or "_rsh_agent" in text) else ():
        if absent := _absent(parameter[1], parameter[2], launcher):
            yield parameter[0].split()[0], f"a pod has no {absent}", f"Remove {parameter[0].partition(' /')[0]}."
    for option, values in call.options or () if spoken is HYDRA else ():
        if option == "map-by" and values and (placed := _PER_RESOURCE.fullmatch(values[0])):
            yield "--map-by", f"only Open MPI has {placed[0]}", f"Write -ppn {placed[1]} instead of --map-by."
    if call.program == "horovodrun" and _DISCOVERY in call.words and "--slots" not in text:
        yield _DISCOVERY, "the operator's script names no slots", f"Add --slots-per-host {job.spec.slots_per_worker}."
    for word in call.words if _OF_OPERATOR in text else ():
        if word.startswith(_OF_OPERATOR) and "discover" in word and word != _DISCOVERY:
            yield word, f"the operator mounts no {shortened(word, 40)}", f"Write {_DISCOVERY}."
    hidden, processes = _HIDES_GPUS in call.words, _PER_NODE.search(text)
    if job.worker and (hidden or processes):
        yield from _of_gpus(call, processes, devices.of_pod(job.worker.template, _GPUS, ctx).exact)


def _option_of_ranks(call: Invocation, spoken: Dialect) -> str:
    return next((name for name, _ in call.options or () if name in spoken.ranks), "np")


def _of_gpus(call: Invocation, processes: re.Match[str] | None, gpus: int) -> Iterator[_Fault]:
    if gpus and _HIDES_GPUS in call.words:
        yield _HIDES_GPUS, f"{_HIDES_GPUS} hides all GPUs", "Remove it and its -x."
    if gpus and processes and int(processes[2]) > gpus and mpirun.starter(call):
        fault = f"{processes[2]} processes for {gpus} GPU{'s' if gpus > 1 else ''} of a worker"
        yield processes[1], fault, f"Write {processes[1]}={gpus}."


def _mounted(call: Invocation, job: MPIJob, ctx: Context) -> Iterator[Violation]:
    after = call.words[call.words.index(call.started) + 1 :]
    scripts = [word for word in after[:1] if word.endswith((".py", ".sh"))]
    launcher, worker = (replica.template if replica else PodTemplate() for replica in (job.launcher, job.worker))
    for program in [path for path in (call.started, *scripts) if "/" in path]:
        volume = _volume_of(program, worker)
        if volume is None and worker.containers and (own := _volume_of(program, launcher)):
            path = f"{replica_path(WORKER)}.template.spec.containers[0].volumeMounts"
            fault = f"{shortened(program, MAX_SHOWN_WORDS_CHARACTERS)} is mounted only in the launcher"
            fix = "Mount it here too." if own.empty_dir is None else "Mount a PersistentVolumeClaim in both."
            yield Violation(path, fault, fix, advisory=True)
        elif volume and volume.empty_dir is not None and call.without_shell and _runs_only_sshd(worker, ctx):
            fault = f"{shortened(program, MAX_SHOWN_WORDS_CHARACTERS)} is in an empty volume"
            fix = "Use a PersistentVolumeClaim, or an init container that fetches the files."
            yield Violation(f"{replica_path(WORKER)}.template.spec.volumes", fault, fix, advisory=True)
        if program == call.started:
            yield from _executable(program, worker, replica_path(WORKER))


def _runs_only_sshd(worker: PodTemplate, ctx: Context) -> bool:
    """Whether nothing in the workers writes files before the ranks start."""
    alone = not worker.init_containers and len(worker.containers) == 1 and b'"postStart"' not in bytes(ctx.document)
    return alone and shell.command(worker.containers[0].argv).program in {"", "sshd"}


def _executable(program: str, template: PodTemplate, path: str) -> Iterator[Violation]:
    if "/" not in program or not template.containers:
        return
    volume, (folder, _, file) = _volume_of(program, template), program.rpartition("/")
    mounts, own = template.containers[0].volume_mounts if folder and not volume else (), folder.rstrip("s").lower()
    if near := [mount.mount_path for mount in mounts or () if mount.mount_path.rstrip("/s").lower() == own]:
        fault, fix = f"no volume is mounted at {folder}", f"Write {near[0].rstrip('/')}/{file}, if the volume has it."
        yield Violation(f"{path}.template.spec.containers[0]", fault, fix, advisory=True)
    source = volume.config_map if volume else None
    mode = source.default_mode if source and not source.items else 0o777
    if mode is None or (isinstance(mode, int) and not mode & 0o111):
        fault = f"{shortened(program, MAX_SHOWN_WORDS_CHARACTERS)} is not executable"
        yield Violation(f"{path}.template.spec.volumes", fault, "Set configMap.defaultMode to 0755.", advisory=True)


def _volume_of(file: str, template: PodTemplate) -> Volume | None:
    """The volume that the first container mounts at the file's folder or above."""
    above, name = "", ""
    for mount in (template.containers[0].volume_mounts if template.containers else None) or ():
        path = mount.mount_path
        if len(path) > len(above) and file.startswith(path.rstrip("/") + "/"):
            above, name = path, mount.name
    volumes = (template.spec.volumes if template.spec and above else None) or ()
    return next((volume for volume in volumes if volume.name == name), None)


def _values(call: Invocation, launcher: Container, job: MPIJob, ctx: Context) -> Iterator[Violation]:
    spoken = mpirun.dialect(call.program, job.spec.mpi_implementation)
    options = {"".join(values): name for name, values in call.options or () if name in spoken.ranks}
    unclear = {value: name for value, name in options.items() if not (_NUMBER.fullmatch(value) and int(value))}
    hosts = {"".join(values): name for name, values in call.options or () if name in HOSTS}
    fixes = {value: f"Use {'' if 'file' in name else '--hostfile '}{mpirun.HOSTFILE}." for value, name in hosts.items()}
    fixes |= {value: _ranks(name, job, ctx) for value, name in unclear.items()}
    faults: Iterable[_Fault] = ()
    if "$" in "".join(call.words):
        named = _named(launcher, LAUNCHER, job)
        of_ranks = _of_ranks(call, launcher, named) if _OF_RANKS.search(" ".join(call.words)) else None
        faults = (of_ranks,) if of_ranks and of_ranks[0] not in fixes else _unreplaced(call, launcher, named, fixes)
    for word, fault, fix in dict.fromkeys(faults):
        yield Violation(_place(launcher, word), fault, fix, advisory=True)
    for value, name in unclear.items():
        if not value or _EXPANDED.search(value) or (_NUMBER.fullmatch(value) and spoken is not HYDRA):
            continue
        certain = spoken is OPEN_MPI and is_all_that_runs(launcher, call)
        refuses = certain and value.startswith("-")
        effect = f"{call.program} refuses it{'' if refuses else ', or starts another number'}"
        fault = f"-{name} {shortened(value)} is not a number of ranks ({effect})"
        yield Violation(_place(launcher, value), fault, fixes[value], advisory=not refuses)


def _of_another(call: Invocation, spoken: Dialect, other: Dialect) -> Sequence[str]:
    """The options of the call, as written, that exist only in the `other` dialect."""
    words, options, _ = mpirun.options_of(call.words, other.options | spoken.options)
    pairs = zip(words, options, strict=True)
    written = dict.fromkeys(word.partition("=")[0] for word, (name, _) in pairs if name not in _OF_SOME)
    return [word for word in written if word not in spoken.options]


def _is_command_line(program: str) -> bool:
    """Whether the word is a program with arguments, not a path with a blank."""
    first, blank, rest = program.strip(_BLANKS).partition(" ")
    of_path = first.startswith("/") and any("/" in word[1:] and word[0] not in "-/" for word in rest.split())
    return bool(blank) and "$" not in program and not of_path


def _inner_shell(call: Invocation) -> int | None:
    """The index of a shell among the words; None if there is no shell."""
    return next((index for index, word in enumerate(call.words) if word.rpartition("/")[2] in shell.SHELLS), None)


def _of_ranks(call: Invocation, launcher: Container, named: Collection[str]) -> _Fault | None:
    """The first variable that the launcher cannot have, outside a shell that mpirun starts."""
    # A script may pass on the text of a reference, which a program on the rank expands.
    if launcher.env_from or (not call.without_shell and any("'" in word or "\\$" in word for word in launcher.argv)):
        return None
    for word in call.words[: _inner_shell(call)]:
        if (rank := _OF_RANKS.search(word)) and rank[1] not in named:
            if rank[1].startswith(("PBS", "SLURM")):
                return word, f"no pod has {rank[1]}", "Write its value."
            return word, f"only ranks have {rank[1]}", f"Run the program by bash -c, and write ${rank[1]} in it."
    return None


def _unreplaced(
    call: Invocation, launcher: Container, named: Collection[str], fixes: Mapping[str, str]
) -> Iterator[_Fault]:
    """(word, fault, fix) of variables without a value.

    `fixes` maps the values of options for ranks and hosts to their fixes. In a script, only these values are checked.
    Words after a shell that mpirun starts are not checked.
    """
    if not call.without_shell:
        variables = shell.Variables("\n".join(launcher.argv), dict.fromkeys(named), complete=not launcher.env_from)
        for reference in filter(None, map(shell.VARIABLE.fullmatch, fixes)):
            name = reference[1] or reference[3]
            if variables.is_unset(name) and not (reference[2] or name.isdigit()):
                yield reference[0], f"nothing in the job sets {shortened(name, 30)}", fixes[reference[0]]
        return
    inner = _inner_shell(call)
    options = call.words.index(call.started) if call.started else len(call.words)
    interprets = not _INTERPRETERS.isdisjoint(word.rpartition("/")[2] for word in call.words[options:inner])
    needs_shell = _needs_shell(launcher.command, launcher.argv)
    for index, word in enumerate(call.words[:inner]):
        variable, number = shell.VARIABLE.search(word), fixes.get(word.rpartition("=")[2], "")
        name = (variable[1] or variable[3]) if variable else ""
        if variable and not interprets and (name in named or number or index < options):
            fix = f"Write $({name})." if name in named or launcher.env_from else number or "Run it by bash -c."
            if fix == number or not needs_shell:
                yield word, f"no shell replaces {shortened(variable[0], 30)}", fix
        whole = index <= options or (not interprets and _IS_REFERENCE.fullmatch(word))
        for missing in shell.REFERENCE.findall(word) if whole and not launcher.env_from else ():
            if not missing or missing in named or _OF_SERVICES.search(missing):
                continue
            fault, fix = f"there is no variable {shortened(missing, 30)} in env", "Add it, or correct the name."
            if missing in programs.TOOLS:
                fault, number = f"Kubernetes replaces $({missing}) by a variable", "Run it by bash -c."
            yield word, fault, number or fix


def _place(container: Container, text: str) -> str:
    return f"{replica_path(LAUNCHER)}.template.spec.containers[0].{_field(container, text)}"


def _field(container: Container, text: str) -> str:
    return "command" if not container.args or any(text in word for word in container.command or ()) else "args"


def _ranks(name: str, job: MPIJob, ctx: Context) -> str:
    """The fix for a number of ranks. It names no number if the job's size must change too."""
    sizes = Sizes.of(job, ctx)
    total = sizes.slots * (sizes.own.workers + (1 if sizes.computing_launcher else 0))
    stays = sizes.own.workers in sizes.replicas() and sizes.slots in ctx.admitted.slots & Span(1)
    stays = stays and sizes.own.gpus in {0, sizes.slots}
    return f"Set -{name} to {total}." if stays else "Write how many ranks to start."
