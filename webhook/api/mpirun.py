"""Finds mpirun in a container's command line and reads how many ranks it starts.

Nothing is guessed. Options are read only if it is known how many words they take, up to the first word that is no
option: that is the program, whose own `-n` means something else. Where the number of ranks is not certain (a shell
variable, an unknown option, several programs, hosts that the user names) it is None.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from webhook.api.limits import MAX_CHARACTERS_BEFORE_PROGRAM
from webhook.api.mpirun_options import HOROVODRUN, HOSTS, HYDRA, OPEN_MPI, PAIRS, PER_NODE, Dialect
from webhook.api.pod import Container

HOSTFILE: Final = "/etc/mpi/hostfile"
"""The operator's own list of workers and slots."""


class Invocation(msgspec.Struct, frozen=True, gc=False):
    """One call of mpirun or its like."""

    program: str
    ranks: int | None = None
    """How many it starts; None if the command line does not show it."""
    per_node: bool = False
    """It says itself how many go to each worker."""
    refuses: bool = False
    """More ranks than slots are an error to it."""
    oversubscribe: bool = False
    """The user asked for more ranks than slots to be allowed."""
    words: tuple[str, ...] = ()
    """What follows it, as far as no shell is needed to know."""
    options: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    """(name without dashes, values) of those before the program that it starts; None if they are unknown."""
    unread: str = ""
    """The option of which nothing is known, and at which reading ended."""


_OWN_DIALECT: Final = {
    "orterun": OPEN_MPI,
    "prterun": OPEN_MPI,
    "mpiexec.hydra": HYDRA,
    "horovodrun": HOROVODRUN,
}
_RANKS_PER_NODE: Final = frozenset(("N", "grr", "npernode", "perhost", "ppn"))
_PPR: Final = re.compile(r"ppr:(\d{1,9}):node(?![a-z])")
# To be started once on each node (https://docs.pytorch.org/docs/stable/elastic/run.html and its older names).
_STARTERS: Final = frozenset(
    ("accelerate", "deepspeed", "torchrun", "torch.distributed.launch", "torch.distributed.run")
)
_LAUNCHERS: Final = frozenset(("mpirun", "mpiexec", *_OWN_DIALECT))
SHELLS: Final = frozenset(("sh", "ash", "bash", "dash", "ksh", "zsh"))

NAMES: Final = ("mpirun", "mpiexec", "orterun", "prterun", "horovodrun")
"""Every call has one of them in its text."""
_PROGRAM: Final = re.compile(r"(?:mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun)(?=[ \t\\])")
# What may stand before it where a shell expects a command: an operator or keyword, assignments, a folder.
_BEFORE: Final = re.compile(
    r"(?:^|[\n;&|(]|(?:\b(?:do|then|else|if|while|until|exec|time|nohup|env|command)|[!{])[ \t])[ \t]*+"
    r"(?:[A-Za-z_]\w*=[^\s;&|()]*+[ \t]++)*+(?:\$\{?\w++\}?)?(?:[^\s;&|()<>'\"`$={}#]*/)?\Z"
)
_WORD: Final = re.compile(
    r"""(?:[ \t]|\\\n)*+((?:[^\s;&|()<>'"\\`#]++|\\[^\n]|'[^']*+'|"(?:[^"\\`]++|\\.)*+"|(?<!\s)\#)++)""", re.DOTALL
)
# `-x NAME` or `-x NAME=value`, also in a variable of the shell that holds options for mpirun.
_EXPORT: Final = re.compile(r"""(?:^|[\s'"=])--?x[\s\\'"]++([A-Za-z_]\w*+)(=?)""")
# Open MPI gives these to ranks by itself (`orte/mca/schizo/ompi`, prrte `src/mca/schizo/ompi`).
_OPEN_MPI_EXPORTS: Final = ("OMPI_", "PRTE_", "PMIX_")
_QUOTING: Final = re.compile(r"""['"]|\\(.)""", re.DOTALL)


def find(command: Sequence[str] | None, args: Sequence[str] | None, implementation: str | None) -> list[Invocation]:
    """The calls of mpirun and its like that a container makes, as far as its command line shows them.

    `implementation` is the job's `mpiImplementation`: it says whose mpirun that is.
    """
    argv = [*(command or ()), *(args or ())]
    # The second start is for an entry point that runs its arguments: command [/entrypoint.sh], args [mpirun, ...].
    for start in sorted({0, len(command or ())}):
        if start == len(argv):
            break
        program = argv[start].rpartition("/")[2]
        if program in _LAUNCHERS:
            return [_read(program, iter(argv[start + 1 :]), implementation)]
        if program in SHELLS:
            return list(_calls(_script(argv[start + 1 :]), implementation))
    return []


def taken_for_a_file(argv: Sequence[str]) -> str:
    """What a shell looks for as a file because `-c` is missing, where it would start mpirun; empty for nothing."""
    if argv[0].rpartition("/")[2] not in SHELLS or _script(argv[1:]):
        return ""
    word = next((word for word in argv[1:] if not word.startswith("-")), "")
    return word if " " in word and any(call.words for call in _calls(word, None)) else ""


class Exports:
    """Which variables of the launcher's environment reach the ranks on the workers.

    Hydra (MPICH, Intel MPI) and horovodrun pass all. Open MPI passes its own, and those that its option `-x` names. In
    a command line that cannot be read the option is looked for anywhere in the text.
    """

    def __init__(self, command: Sequence[str] | None, args: Sequence[str] | None, implementation: str | None) -> None:
        calls = find(command, args, implementation)
        self._all = bool(calls) and all(dialect(call.program, implementation) is not OPEN_MPI for call in calls)
        self._all = self._all or (not calls and implementation != "OpenMPI")
        self._named: dict[str, bool] = {}
        if self._all:
            return
        if calls and all(call.options is not None for call in calls):
            named = (
                values[0].partition("=")
                for call in calls
                for name, values in call.options or ()
                if name == "x" and values
            )
            self._named = {name: bool(equals) for name, equals, _ in named}
        else:
            text = "\n".join((*(command or ()), *(args or ())))
            self._named = {found[1]: bool(found[2]) for found in _EXPORT.finditer(text)}

    def passes(self, name: str) -> bool:
        """Whether ranks get the variable `name`."""
        return self._all or name in self._named or name.startswith(_OPEN_MPI_EXPORTS)

    def sets(self, name: str) -> bool:
        """Whether the command line gives the variable a value itself."""
        return self._named.get(name, False)


def _script(options: Sequence[str]) -> str:
    """What follows `-c` (or `-lc`, `-ec`, ...)."""
    for index, option in enumerate(options[:-1]):
        if option.startswith("-") and not option.startswith("--") and "c" in option:
            return options[index + 1]
    return ""


def _calls(script: str, implementation: str | None) -> Iterator[Invocation]:
    readable = "<<" not in script  # a here-document holds lines that may never run
    for start in _mentions(script):
        first = max(script.rfind("\n", 0, start), start - MAX_CHARACTERS_BEFORE_PROGRAM, 0)
        program = _PROGRAM.match(script, start)
        if readable and program and _BEFORE.search(script, first, start):
            yield _read(program[0], _words(script, program.end()), implementation)
        else:
            yield Invocation("mpirun")


def _mentions(script: str) -> Iterator[int]:
    for name in NAMES:
        start = script.find(name)
        while start >= 0:
            yield start
            start = script.find(name, start + 1)


def _words(script: str, position: int) -> Iterator[str]:
    """The words of one command, up to an operator, the end of the line, or what only a shell could expand."""
    while match := _WORD.match(script, position):
        position = match.end()
        word = match[1]
        yield _QUOTING.sub(r"\1", word) if "'" in word or '"' in word or "\\" in word else word


def _read(program: str, words: Iterator[str], implementation: str | None) -> Invocation:
    """The call of `program` with these words, read up to the program that it starts."""
    spoken = dialect(program, implementation)
    given = tuple(words)
    options: list[tuple[str, tuple[str, ...]]] = []
    position, end = 0, len(given)
    while position < end and (word := given[position]).startswith("-"):
        position += 1
        option = spoken.options.get(word)
        if option is None:
            plain, equals, value = word.lstrip("-").partition("=")
            option = spoken.options.get(plain)
            if option is None or (equals and option[1] != 1):
                return Invocation(program, words=given, unread=word)
            if equals:
                options.append((option[0], (value,)))
                continue
        name, count = option
        if count == 2 and name in PAIRS and "=" in "".join(given[position : position + 1]):
            count = 1
        options.append((name, given[position : position + count]))
        position += count
    started = given[position] if position < end else None
    # A variable may hold more options, and a colon starts a second program with ranks of its own.
    if started is None or (started.startswith("$") and "/" not in started) or ":" in given[position + 1 :]:
        return Invocation(program, words=given)
    return _summed_up(program, given, position, tuple(options), spoken)


def _summed_up(
    program: str, words: tuple[str, ...], end: int, options: tuple[tuple[str, tuple[str, ...]], ...], spoken: Dialect
) -> Invocation:
    """The call whose `options` are the words before `end`."""
    ranks: list[int | None] = []
    per_node, hosts, own_hosts = False, False, False
    for name, values in options:
        if name == "x":
            continue
        if name in spoken.ranks:
            ranks.append(_number(values))
        elif name in HOSTS:
            hosts = True
            own_hosts |= values != (HOSTFILE,)
        elif name in PER_NODE or (name == "map-by" and "ppr" in "".join(values)):
            per_node = True
    if len(ranks) != 1 or own_hosts or (spoken.needs_hostfile and not hosts):
        return Invocation(program, words=words, options=options)
    return Invocation(
        program,
        ranks=ranks[0],
        per_node=per_node,
        refuses=spoken.refuses,
        oversubscribe=oversubscribes(" ".join(words[:end])),
        words=words,
        options=options,
    )


def ranks_per_node(call: Invocation) -> int | None:
    """How many ranks the call says that each worker gets; None if it does not say, or not for certain."""
    found: set[int | None] = set()
    for name, values in call.options or ():
        text = "".join(values).lower()
        if name in {"pernode", "rr"}:
            found.add(1)
        elif name in _RANKS_PER_NODE:
            found.add(_number(values))
        elif name == "map-by" and (pattern := _PPR.match(text)):
            found.add(_number((pattern[1],)))
    return found.pop() if len(found) == 1 else None


def starter(call: Invocation) -> str | None:
    """The program in the call that itself starts a process for each GPU of its node, if there is one."""
    for word in call.words:
        name = word.rpartition("/")[2]
        if name in _STARTERS:
            return name
    return None


def dialect(program: str, implementation: str | None) -> Dialect:
    """What this program understands in a job with this `mpiImplementation`."""
    return _OWN_DIALECT.get(program) or (OPEN_MPI if implementation == "OpenMPI" else HYDRA)


def oversubscribes(text: str) -> bool:
    """Whether an option or environment variable lets more ranks start than there are slots."""
    plain = text.lower().replace("_", "")
    return "oversubscribe" in plain and "nooversubscribe" not in plain


def oversubscribes_by_env(container: Container) -> bool:
    """Whether a variable of the container does."""
    env = container.env or ()
    # All of them at once first: hardly any does.
    texts = "".join([text for variable in env for text in (variable.name, variable.value or "")])
    if "oversubscribe" not in texts.lower().replace("_", ""):
        return False
    return any(oversubscribes(f"{variable.name} {variable.value}") for variable in env)


def _number(values: tuple[str, ...]) -> int | None:
    text = "".join(values)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and text.strip("0") else None
