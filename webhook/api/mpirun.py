"""Finds mpirun in a container's command line and reads how many ranks it starts.

The first word after mpirun's options is the program that mpirun starts. A `-n` after this word is an option of the
started program. The number of ranks is uncertain if there is a shell variable, an unknown option, a second program, or
an option that names the hosts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from webhook.api import shell
from webhook.api.limits import MAX_CHARACTERS_BEFORE_EMPTY_CALL, MAX_CHARACTERS_BEFORE_PROGRAM
from webhook.api.mpirun_options import HOROVODRUN, HOSTS, HYDRA, OPEN_MPI, PAIRS, PER_NODE, Dialect
from webhook.api.pod import Container, EnvVar

CONFIG_FOLDER: Final = "/etc/mpi"
HOSTFILE: Final = f"{CONFIG_FOLDER}/hostfile"
"""The list of workers and slots that the operator writes."""


class Invocation(msgspec.Struct, frozen=True, gc=False):
    """One call of mpirun or a similar program."""

    program: str
    """mpirun or the similar program. The program that it starts is `started`."""
    ranks: int | None = None
    """Ranks that the call starts; None if the command line does not show the number."""
    per_node: bool = False
    """The call sets the number of ranks on each worker."""
    refuses: bool = False
    """More ranks than slots are an error."""
    oversubscribe: bool = False
    """An option or variable allows more ranks than slots."""
    words: tuple[str, ...] = ()
    """The words after `program`, as far as they can be read without running a shell."""
    options: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    """(name without dashes, values) of the options before the started program; None if they are unknown."""
    unread: str = ""
    """The unknown option at which reading ended."""
    started: str = ""
    """The started program; empty if it is unknown."""
    starts_nothing: bool = False
    """No program follows the options."""
    without_shell: bool = False
    """No shell changes the words of the call. Kubernetes still replaces variables."""


_OWN_DIALECT: Final = {
    "orterun": OPEN_MPI,
    "prterun": OPEN_MPI,
    "mpiexec.hydra": HYDRA,
    "horovodrun": HOROVODRUN,
}
_PPR: Final = re.compile(r"ppr:(\d{1,5}):(node(?![a-z]))?", re.IGNORECASE)
ON_EACH_NODE: Final = frozenset(
    ("accelerate", "deepspeed", "torchrun", "torch.distributed.launch", "torch.distributed.run")
)
"""Programs that start a process for each GPU of their node: https://docs.pytorch.org/docs/stable/elastic/run.html"""
LAUNCHERS: Final = frozenset(("mpirun", "mpiexec", *_OWN_DIALECT))
OF_SCHEDULERS: Final = frozenset(("aprun", "jsrun", "qsub", "sbatch", "srun"))
"""Programs that start ranks or submit jobs in a batch system such as Slurm."""

NAMES: Final = ("mpirun", "mpiexec", "orterun", "prterun", "horovodrun")
"""Every call of mpirun or a similar program contains one of these names."""
NEAR_MPIRUN: Final = re.compile(
    r"(?:^|[\n;&|])[ \t]*+(?!mpirun\b|mpiexec\b)"
    rf"(m[pi]{{1,2}}[-_]?(?:r[unm]{{1,3}}|e[xec]{{2,4}})|{'|'.join(OF_SCHEDULERS)})(?=\s|\Z)"
)
"""A misspelt mpirun or mpiexec, or a batch system's program, at the start of a command."""
_PROGRAM: Final = re.compile(r"(?:mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun)(?=[\s;&|)<>]|\Z)")
# `-x NAME=$(command)`: the value is one word, so the words after it can be read.
_EXPORTED_OUTPUT: Final = re.compile(
    r"(\s-x[ \t]+\w+=)(?=\S*(?:\$\(|`))(?>(?:\$\([^()]*+\)|`[^`]*+`|[^\s;&|()<>'\"\\`#])+)"
)
_HOSTFILE_VARIABLE: Final = "OMPI_MCA_orte_default_hostfile"  # set by the operator, see `webhook.api.operator_env`
_AS_USER: Final = frozenset(("runuser", "su"))
# The text before mpirun in a shell command: a shell operator, a keyword or the quote of `su USER -c "`, then programs
# that start mpirun, then mpirun's folder.
_BEFORE: Final = re.compile(
    rf"(?:^|[\n;&|(]|(?:\b(?:{'|'.join(filter(str.isalpha, shell.KEYWORDS))}|exec|time|nohup|env|command)|[!{{])[ \t]"
    r"|\b(?:su|runuser)\b[^\n;&|'\"]*[ \t]-c[ \t]+(['\"]))"
    rf"[ \t]*+{shell.STARTS}(?:\$\{{?\w++\}}?)?(?:[^\s;&|()<>'\"`$={{}}#]*/)?\Z"
)
# The end of a command. A substitution does not end a command, because words may follow it.
_END: Final = re.compile(r"[ \t]*+(?:\r?\n|;|\)|\|\|?|&&|&(?!>)|\Z)")
# Programs whose arguments may be a script that starts mpirun.
_READS_FILES: Final = re.compile(r"(?:.*/)?(?:[a-z]*sh|python[\d.]*|perl|ruby|java|make|srun)")
# A file from the image or a volume may start any program. A variable may contain any program.
_FILE: Final = re.compile(
    r"(?<![\w/.~-])(?!/(?:bin|dev|proc|sbin|usr/bin|usr/sbin)/)[\w.~-]*+/|\.(?:py|sh)\b|\$"
    r"|\b(?:entrypoint|init|run|start|supervisord)\b"
)


def find(
    command: Sequence[str] | None,
    args: Sequence[str] | None,
    implementation: str | None,
    env: Iterable[EnvVar] = (),
    *,
    env_from: bool = False,
) -> list[Invocation]:
    """The calls of mpirun and similar programs that a container makes, as far as its command line shows them.

    `implementation` is the job's `mpiImplementation`, which defines the options of mpirun. With `env_from` the
    container has more variables than `env`.
    """
    argv = [*(command or ()), *(args or ())]
    values: dict[str, str | None] = {}
    if "$" in "".join(argv):
        values = {variable.name: variable.value if shell.is_plain(variable.value or "") else None for variable in env}
        if implementation == "OpenMPI":
            values[_HOSTFILE_VARIABLE] = HOSTFILE
        argv = [shell.REFERENCE.sub(lambda reference: values.get(reference[1]) or reference[0], word) for word in argv]
    # The second position is for an entry point that runs its arguments: command [/entrypoint.sh], args [mpirun, ...].
    for start in dict.fromkeys((0, len(command or ()))):
        line = shell.command(argv[start:])
        words, program, text, rest = line.words, line.program, line.script, line.rest
        if not words:
            break
        if program in LAUNCHERS:
            call = _read(program, words[1:], implementation, without_shell=True)
            # The entry point of an image may add the program.
            return [structs.replace(call, starts_nothing=False)] if start or not command else [call]
        if len(rest) == 1 and " " in rest[0] and "$" not in text:
            text = f"{text}\n{rest[0]}"  # `sh -c "cd /src" "mpirun train"`: the user means two commands
        if program in {"cd", "export"}:  # they exist only in a shell, so the user means a script
            text = " ".join(words)
        if program in _AS_USER and "-c" in words[:-1]:
            text = words[words.index("-c") + 1]
        if program in shell.SHELLS or text:
            return list(_calls(shell.plain(text), implementation, values, complete=not env_from))
    return []


def taken_for_a_file(argv: Sequence[str], implementation: str | None) -> str:
    """The word with mpirun that a shell without `-c` reads as a file name; empty if there is none.

    Intel's mpirun is a shell script, so a shell can run it from its file.
    """
    word = next((word for word in argv[1:] if not word.startswith("-")), "")
    if word.rpartition("/")[2] in LAUNCHERS and implementation != "Intel":
        return word
    return word if " " in word and any(call.words for call in _calls(shell.plain(word), None, {})) else ""


def shows(container: Container) -> bool:
    """Whether the command shows everything that the container runs."""
    argv = shell.unwrapped(container.argv)
    of_program = argv[:1] if argv and _READS_FILES.fullmatch(argv[0]) is None else argv
    return bool(container.command) and not _FILE.search(" ".join(of_program))


def mentions(container: Container) -> bool:
    """Whether the container may run mpirun or a similar program."""
    return bool(find(container.command, container.args, None))


def runs(container: Container) -> bool:
    """Whether the container certainly runs mpirun or a similar program."""
    return any(call.words for call in find(container.command, container.args, None))


def _calls(
    script: str, implementation: str | None, env: Mapping[str, str | None], *, complete: bool = False
) -> Iterator[Invocation]:
    variables: shell.Variables | None = None
    script = _EXPORTED_OUTPUT.sub(r"\1$_", script)
    readable = not shell.has_here_document(script)
    for start in _mentions(script):
        first = max(start - MAX_CHARACTERS_BEFORE_PROGRAM, 0)
        first = max(script.rfind("\n", first, start), first)
        program = _PROGRAM.match(script, start)
        if readable and program and (before := _BEFORE.search(script, first, start)):
            quote = script.find(before[1], program.end()) if before[1] else -1
            words, end = shell.words(script, program.end(), len(script) if quote < 0 else quote)
            if any("$" in word for word in words):
                variables = variables or shell.Variables(script, env, complete=complete)
                words = [variables.replaced(word, start) for word in words]
            call = _read(program[0], words, implementation)
            if call.starts_nothing and not _is_whole(script, start, end):
                call = structs.replace(call, starts_nothing=False)
            yield call
        else:
            yield Invocation("mpirun")


def _is_whole(script: str, start: int, end: int) -> bool:
    """Whether the text from `start` to `end` is a whole command.

    A text in an array, `RUN=(mpirun -np 2)`, or in quotes is not a command.
    """
    if start > MAX_CHARACTERS_BEFORE_EMPTY_CALL or not (ending := _END.match(script, end)):
        return False
    before = script[:start]
    in_quotes = before.count('"') % 2 or before.count("'") % 2
    array, opened = before.rfind("=("), before.count("(") - before.count(")")
    in_array = array >= 0 and before.count("(", array) > before.count(")", array)
    return not in_quotes and not in_array and (opened > 0 or not ending[0].endswith(")"))


def _mentions(script: str) -> Iterator[int]:
    for name in NAMES:
        start = script.find(name)
        while start >= 0:
            yield start
            start = script.find(name, start + 1)


def _read(program: str, words: Sequence[str], implementation: str | None, *, without_shell: bool = False) -> Invocation:
    syntax = dialect(program, implementation)
    arguments = tuple(words)
    _, options, position = options_of(arguments, syntax.options)
    started = "".join(arguments[position : position + 1])
    if started.startswith("-"):
        return Invocation(program, words=arguments, unread=started, without_shell=without_shell)
    if not started.strip():  # no word, or the blank after a backslash at the end of a line
        return Invocation(program, words=arguments, starts_nothing=True, without_shell=without_shell)
    # A variable may contain more options, and a colon starts a second program with its own ranks.
    if (started.startswith("$") and "/" not in started) or ":" in arguments[position + 1 :]:
        return Invocation(program, words=arguments, without_shell=without_shell)
    ranks = [_number(values) for name, values in options if name in syntax.ranks]
    hosts = {values for name, values in options if name in HOSTS}
    certain = len(ranks) == 1 and hosts <= {(HOSTFILE,)} and not (syntax.needs_hostfile and not hosts)
    return Invocation(
        program,
        ranks=ranks[0] if certain else None,
        per_node=certain and bool(_per_node_options(options)),
        refuses=certain and syntax.refuses,
        oversubscribe=oversubscribes(" ".join(arguments[:position])),
        words=arguments,
        options=tuple(options),
        started=started,
        without_shell=without_shell,
    )


def options_of(
    words: tuple[str, ...], dialect_options: Mapping[str, tuple[str, int]]
) -> tuple[list[str], list[tuple[str, tuple[str, ...]]], int]:
    """The leading options as written, their (name without dashes, values), and the position after them."""
    written, options, position = list[str](), list[tuple[str, tuple[str, ...]]](), 0
    while position < len(words):
        word, equals = words[position], ""
        option = dialect_options.get(word)
        if option is None and word.startswith("-"):
            plain, equals, value = word.lstrip("-").partition("=")
            option = dialect_options.get(f"-{plain}")
        if option is None or (equals and option[1] != 1):
            break
        name, count = option
        position += 1
        if count == 2 and name in PAIRS and "=" in "".join(words[position : position + 1]):
            count = 1
        written.append(word)
        if equals:
            options.append((name, (value,)))
        else:
            options.append((name, words[position : position + count]))
            position += count
    return written, options, position


class PerNode(NamedTuple):
    """The number of ranks that a call starts on each node."""

    option: str
    ranks: int
    exactly: bool
    """The number is per node, not per socket or core."""


def per_node(call: Invocation) -> PerNode | None:
    """None if the call does not set the number, or if the number is uncertain."""
    numbers = [_per_node(name, "".join(values)) for name, values in _per_node_options(call.options or ())]
    return numbers[0] if numbers and len({number and number[1:] for number in numbers}) == 1 else None


def _per_node_options(options: Sequence[tuple[str, tuple[str, ...]]]) -> Sequence[tuple[str, tuple[str, ...]]]:
    return [
        (name, values)
        for name, values in options
        if name in PER_NODE or (name == "map-by" and "ppr" in "".join(values))
    ]


def _per_node(name: str, value: str) -> PerNode | None:
    if name in {"pernode", "rr"}:
        return PerNode(name, 1, exactly=True)
    if name == "map-by":
        pattern = _PPR.match(value)
        return PerNode(name, int(pattern[1]), exactly=bool(pattern[2])) if pattern and int(pattern[1]) else None
    ranks = _number((value,))
    return PerNode(name, ranks, exactly=name != "npersocket") if ranks else None


def starter(call: Invocation) -> str | None:
    """The program from ON_EACH_NODE in the words of the call; None if there is none."""
    return next((name for word in call.words if (name := word.rpartition("/")[2]) in ON_EACH_NODE), None)


def dialect(program: str, implementation: str | None) -> Dialect:
    return _OWN_DIALECT.get(program) or (OPEN_MPI if implementation == "OpenMPI" else HYDRA)


def oversubscribes(text: str) -> bool:
    """Whether an option or environment variable allows more ranks than slots."""
    plain = text.lower().replace("_", "")
    return "oversubscribe" in plain and "nooversubscribe" not in plain


def oversubscribes_by_env(container: Container) -> bool:
    env = container.env or ()
    texts = "".join([text for variable in env for text in (variable.name, variable.value or "")])
    may_match = "oversubscribe" in texts.lower().replace("_", "")
    return may_match and any(oversubscribes(f"{variable.name} {variable.value}") for variable in env)


def _number(values: tuple[str, ...]) -> int | None:
    text = "".join(values)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and text.strip("0") else None
