"""Finds mpirun in a container's command line and reads how many ranks it starts.

Nothing is guessed. Options are read only if it is known how many words they take, up to the first word that is no
option: that is the program, whose own `-n` means something else. Where the number of ranks is not certain (a shell
variable, an unknown option, several programs, hosts that the user names) it is None.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import structs

from webhook.api.limits import (
    MAX_CHARACTERS_BEFORE_EMPTY_CALL,
    MAX_CHARACTERS_BEFORE_PROGRAM,
    MAX_WORDS_OF_STARTERS,
)
from webhook.api.mpirun_options import HOROVODRUN, HOSTS, HYDRA, OPEN_MPI, PAIRS, PER_NODE, Dialect
from webhook.api.pod import Container, EnvVar

CONFIG_FOLDER: Final = "/etc/mpi"
HOSTFILE: Final = f"{CONFIG_FOLDER}/hostfile"
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
    started: str = ""
    """The program that it starts; empty where that is unknown."""
    starts_nothing: bool = False
    """No program follows its options."""
    without_shell: bool = False
    """It gets its words as they are written, except for the variables that Kubernetes replaces."""


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
LAUNCHERS: Final = frozenset(("mpirun", "mpiexec", *_OWN_DIALECT))
SHELLS: Final = frozenset(("sh", "ash", "bash", "dash", "ksh", "zsh"))

NAMES: Final = ("mpirun", "mpiexec", "orterun", "prterun", "horovodrun")
"""Every call has one of them in its text."""
_PROGRAM: Final = re.compile(r"(?:mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun)(?=[\s;&|)<>]|\Z)")
# Programs that start another one, with their options, and assignments before a command.
_STARTS: Final = (
    r"(?:(?:[^\s;&|()]*/)?(?:command|exec|nohup|setsid|time(?:[ \t]+-p)?"
    r"|(?:busybox|catatonit|dumb-init|env|stdbuf|tini)(?:[ \t]+-\S+)*"
    r"|timeout(?:[ \t]+(?:-[ks][ \t]+\S+|-\S+))*+[ \t]+[\d.]+[smhd]?|(?:gosu|su-exec)[ \t]+\S+"
    r"|(?:runuser|sudo)(?:[ \t]+(?:-u[ \t]+\S+|-\S+))*+)|[A-Za-z_]\w*=[^\s;&|()]*)[ \t]+"
)
STARTERS: Final = re.compile(rf"(?:{_STARTS})*+")
_HOSTFILE_VARIABLE: Final = "OMPI_MCA_orte_default_hostfile"  # by the operator, as `webhook.api.operator_env` has it
_BLANKS: Final = re.compile(r"\s")
_AS_USER: Final = frozenset(("runuser", "su"))
# What may stand before it where a shell expects a command: an operator, a keyword, the quote of `su USER -c "`, then
# programs that start it, and a folder.
_BEFORE: Final = re.compile(
    r"(?:^|[\n;&|(]|(?:\b(?:do|then|else|if|while|until|exec|time|nohup|env|command)|[!{])[ \t]"
    r"|\b(?:su|runuser)\b[^\n;&|'\"]*[ \t]-c[ \t]+(['\"]))"
    rf"[ \t]*+(?:{_STARTS})*+(?:\$\{{?\w++\}}?)?(?:[^\s;&|()<>'\"`$={{}}#]*/)?\Z"
)
# `$NAME` and `${NAME}`; `$(NAME)`, which Kubernetes replaces, and what it leaves alone.
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))")
_REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_PLAIN: Final = re.compile(r"[\w./:,@%+=-]+", re.ASCII)
_ASSIGNED: Final = re.compile(
    r"""(?:\A|[\n;])[ \t]*(?:export[ \t]+)?(\w+)=(['"]?)([\w./:,@%+-]+)\2(?=[ \t]*(?:[\n;&]|\Z))"""
)
_NAME: Final = re.compile(r"(?<![\w$])(?<!\$\{)[A-Za-z_]\w*")
# What may set any variable, and what may set one or not.
_OTHER_SCRIPT: Final = re.compile(r"\b(?:eval|source)\b|(?:\A|[\n;&|])[ \t]*\.[ \t]")
_BRANCH: Final = re.compile(r"\b(?:case|for|function|if|select|until|while)\b|\(\)|&&|\|\|")
_PARTS: Final = r"""(?:[^\s;&|()<>'"\\`#]++|\\.|'[^']*+'|"(?:[^"\\`]++|\\.)*+"|(?<!\s)\#)++"""
_REDIRECTION: Final = rf"(?:\d|&)?(?:>>|>\||<>|>|<<<|<)(?:&(?:\d|-)|[ \t]*+{_PARTS})"
_WORD: Final = re.compile(rf"[ \t]*+(?:{_REDIRECTION}|({_PARTS}))", re.DOTALL)
REDIRECTION: Final = re.compile(_REDIRECTION, re.DOTALL)
# The end of a command: no substitution, after which words may follow.
_END: Final = re.compile(r"[ \t]*+(?:\r?\n|;|\)|\|\|?|&&|&(?!>)|\Z)")
# A shell removes comments, and a backslash at the end of a line. The group matches quoted text, which it keeps.
_LEFT_OUT: Final = re.compile(
    r"""('[^']*+'|"(?:[^"\\]++|\\.)*+"|\\[^\n])|\\\n|(?:^|(?<=[\s;&|()]))\#[^\n]*+""", re.DOTALL
)
# A file of the image or of a volume may start anything, and so may a variable.
_FILE: Final = re.compile(
    r"(?<![\w/.~-])(?!/(?:bin|dev|proc|sbin|usr/bin|usr/sbin)/)[\w.~-]*+/|\.(?:py|sh)\b|\$"
    r"|\b(?:entrypoint|init|run|start|supervisord)\b"
)
# `-x NAME` or `-x NAME=value`, also in a variable of the shell that holds options for mpirun.
_EXPORT: Final = re.compile(r"""(?:^|[\s'"=])--?x[\s\\'"]++([A-Za-z_]\w*+)(=?)""")
# Open MPI gives these to ranks by itself (`orte/mca/schizo/ompi`, prrte `src/mca/schizo/ompi`).
_OPEN_MPI_EXPORTS: Final = ("OMPI_", "PRTE_", "PMIX_")
_QUOTING: Final = re.compile(r"""['"]|\\(.)""", re.DOTALL)


def find(
    command: Sequence[str] | None,
    args: Sequence[str] | None,
    implementation: str | None,
    env: Iterable[EnvVar] = (),
) -> list[Invocation]:
    """The calls of mpirun and its like that a container makes, as far as its command line shows them.

    `implementation` is the job's `mpiImplementation`: it says whose mpirun that is. `env` is the container's.
    """
    constants = {one.name: one.value for one in env if one.value and _PLAIN.fullmatch(one.value)}
    if implementation == "OpenMPI":
        constants[_HOSTFILE_VARIABLE] = HOSTFILE
    argv = [
        _REFERENCE.sub(lambda found: constants.get(found[1], found[0]), word)
        for word in (*(command or ()), *(args or ()))
    ]
    # The second start is for an entry point that runs its arguments: command [/entrypoint.sh], args [mpirun, ...].
    for start in sorted({0, len(command or ())}):
        words = unwrapped(argv[start:])
        if not words:
            break
        program = words[0].rpartition("/")[2]
        if program in LAUNCHERS:
            call = _read(program, words[1:], implementation)
            # The entry point of an image may add the program.
            starts_nothing = call.starts_nothing and bool(command) and not start
            return [structs.replace(call, without_shell=True, starts_nothing=starts_nothing)]
        if program in SHELLS:
            return list(_calls(plain(script(words)[0]), implementation, constants))
        if program in _AS_USER and "-c" in words[:-1]:
            return list(_calls(plain(words[words.index("-c") + 1]), implementation, constants))
    return []


def unwrapped(argv: Sequence[str]) -> Sequence[str]:
    """The words from the program on that `env A=B`, `timeout 1h`, `tini --` and the like start."""
    start = "".join(
        f"{_BLANKS.sub('_', word[:MAX_CHARACTERS_BEFORE_PROGRAM])} " for word in argv[:MAX_WORDS_OF_STARTERS]
    )
    found = STARTERS.match(start)
    return argv[found[0].count(" ") :] if found and found[0] else argv


def plain(script: str) -> str:
    """The script without comments, each command in one line."""
    return _LEFT_OUT.sub(r"\1", script)


def has_here_document(script: str) -> bool:
    """Whether it has lines that may never run."""
    return "<<" in script.replace("<<<", "")


def taken_for_a_file(argv: Sequence[str]) -> str:
    """What the shell looks for as a file because `-c` is missing, where it would start mpirun; empty for nothing."""
    if script(argv)[0]:
        return ""
    word = next((word for word in argv[1:] if not word.startswith("-")), "")
    return word if " " in word and any(call.words for call in _calls(plain(word), None, {})) else ""


def shows(container: Container) -> bool:
    """Whether its command shows all that the container runs."""
    return bool(container.argv) and not _FILE.search(" ".join(container.argv))


def mentions(container: Container) -> bool:
    """Whether the container may run mpirun or its like."""
    return bool(find(container.command, container.args, None))


def runs(container: Container) -> bool:
    """Whether it does for certain."""
    return any(call.words for call in find(container.command, container.args, None))


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


def script(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """What a shell runs by `-c` (or `-lc`, `-ec`, ...), empty without it, and the words that follow it."""
    position, by_c = 1, False
    while position < len(argv) and (option := argv[position])[:1] in {"-", "+"}:
        position += 1
        if option in {"-", "--"}:
            break
        if option.startswith("--"):
            position += option in {"--rcfile", "--init-file"}
            continue
        by_c |= option[0] == "-" and "c" in option
        position += "o" in option or "O" in option  # the name of an option of the shell follows
    return (argv[position], argv[position + 1 :]) if by_c and position < len(argv) else ("", ())


def _calls(script: str, implementation: str | None, constants: Mapping[str, str]) -> Iterator[Invocation]:
    values: dict[str, tuple[int, str]] | None = None
    readable = not has_here_document(script)
    for start in _mentions(script):
        first = max(start - MAX_CHARACTERS_BEFORE_PROGRAM, 0)
        first = max(script.rfind("\n", first, start), first)
        program = _PROGRAM.match(script, start)
        if readable and program and (before := _BEFORE.search(script, first, start)):
            quote = script.find(before[1], program.end()) if before[1] else -1
            words, end = _words(script, program.end(), len(script) if quote < 0 else quote)
            if any("$" in word for word in words):
                values = _values(script, constants) if values is None else values
                words = [_replaced(word, values, start) for word in words]
            call = _read(program[0], words, implementation)
            if call.starts_nothing and not _is_whole(script, start, end):
                call = structs.replace(call, starts_nothing=False)
            yield call
        else:
            yield Invocation("mpirun")


def _values(script: str, constants: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Variables of the shell that have one value in all of the script: from which character on, and the value."""
    if _OTHER_SCRIPT.search(script):
        return {}
    # A name without a dollar sign may get another value there.
    written = Counter(_NAME.findall(script))
    branch = _BRANCH.search(script)
    assigned = _ASSIGNED.finditer(script, 0, branch.start() if branch else len(script))
    own = {found[1]: (found.end(), found[3]) for found in assigned if written[found[1]] == 1}
    return own | {name: (0, value) for name, value in constants.items() if not written[name]}


def _replaced(word: str, values: Mapping[str, tuple[int, str]], position: int) -> str:
    def value(found: re.Match[str]) -> str:
        start, text = values.get(found[1] or found[2], (position + 1, ""))
        return text if start <= position else found[0]

    return _VARIABLE.sub(value, word)


def _is_whole(script: str, start: int, end: int) -> bool:
    """Whether a command ends where its words do, rather than at what only a shell could read.

    A list of words for later, `RUN=(mpirun -np 2)`, is no command, nor is a text in quotes.
    """
    if start > MAX_CHARACTERS_BEFORE_EMPTY_CALL or not (found := _END.match(script, end)):
        return False
    before = script[:start]
    in_quotes = before.count('"') % 2 or before.count("'") % 2
    array, opened = before.rfind("=("), before.count("(") - before.count(")")
    in_array = array >= 0 and before.count("(", array) > before.count(")", array)
    return not in_quotes and not in_array and (opened > 0 or not found[0].endswith(")"))


def _mentions(script: str) -> Iterator[int]:
    for name in NAMES:
        start = script.find(name)
        while start >= 0:
            yield start
            start = script.find(name, start + 1)


def _words(script: str, position: int, limit: int) -> tuple[list[str], int]:
    """The words of one command, and where they end: at an operator, a line's end, or what only a shell could expand."""
    words = []
    while match := _WORD.match(script, position, limit):
        position = match.end()
        if word := match[1]:
            words.append(_QUOTING.sub(r"\1", word) if "'" in word or '"' in word or "\\" in word else word)
    return words, position


def _read(program: str, words: Sequence[str], implementation: str | None) -> Invocation:
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
    started = given[position] if position < end else ""
    if not started.strip():  # a blank behind the backslash at the end of a line is a word
        return Invocation(program, words=given, starts_nothing=True)
    # A variable may hold more options, and a colon starts a second program with ranks of its own.
    if (started.startswith("$") and "/" not in started) or ":" in given[position + 1 :]:
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
    oversubscribe = oversubscribes(" ".join(words[:end]))
    if len(ranks) != 1 or own_hosts or (spoken.needs_hostfile and not hosts):
        return Invocation(program, oversubscribe=oversubscribe, words=words, options=options, started=words[end])
    return Invocation(
        program,
        ranks=ranks[0],
        per_node=per_node,
        refuses=spoken.refuses,
        oversubscribe=oversubscribe,
        words=words,
        options=options,
        started=words[end],
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
