"""Finds the cause of a failure in a program's log. `logs.yaml` lists the messages that are recognised."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, islice, pairwise
from operator import itemgetter
from pkgutil import get_data
from typing import Final, NamedTuple

from msgspec import Struct, convert
from msgspec.structs import replace

from webhook.api import yaml
from webhook.parts.why.limits import MAX_LINES_WITH_ERRORS, MAX_LOG_LINE_CHARACTERS


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """A message in a log, and its meaning."""

    id: str
    patterns: tuple[str, ...]
    text: str
    fix: str = ""
    rules: frozenset[str] = frozenset()
    early: bool = False
    """Whether the launcher may have started too early."""
    passes: bool = False
    """Whether the problem may end without any change."""
    connecting: bool = False
    """Whether the message is written before the ranks start."""
    survived: bool = False
    """Whether the program may continue after the message."""
    late: bool = False
    """Whether mpirun or torchrun writes the message, usually after the cause. Among several such messages, the first in
    the table is chosen."""
    result: bool = False
    """Whether the message may be the consequence of an exception."""

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self.patterns))


OF_SSHD: Final = frozenset({"wrong-key", "ssh-closed", "no-sshd", "no-daemon"})
"""Causes whose reason may be in the log of a worker's sshd."""
BY_SSHD: Final = frozenset({"strict-modes", "sshd-chroot", "sshd-pam", "sshd-port", "no-host-keys", "sshd-directory"})
"""Causes that are found in the log of a worker's sshd."""

_RAN: Final = re.compile(
    r"Primary job  terminated|(?:mpirun|mpiexec|prterun|prte) detected that one|noticed that process rank"
    r"|BAD TERMINATION"
)
# Messages about a lost connection to a different rank, and signal 6, which ends a rank after it has lost a connection.
_LOST: Final = re.compile(
    r"Connection (?:was likely )?(?:closed|reset)|gloo/transport|remote process exited|PROC_FAILED"
    r"|socketStartConnect|connect returned|Communication error with rank|\b(?:signal|CODE:|SIGNAL:) 6\b"
)
# Exceptions that report only the failure of a different process, or only a missing hostfile of deepspeed.
_SECOND: Final = re.compile(
    r"ChildFailed|CalledProcess|NCCL|\bMPI|[Hh]orovod|\b(?:ssh|SSH)\b|DistBackend|killed by signal"
    rf"|DataLoader worker|no GPU resources available|Found no NVIDIA driver|{_LOST.pattern}"
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(r"(?!(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b)[A-Za-z_][\w.]*(?::|$)")
_UNCAUGHT: Final = re.compile(r"\[rank\d+\]:")  # PyTorch writes this before an exception that ends a rank
_CHAINED: Final = ("During handling of the above", "The above exception was")
_RULE: Final = re.compile(r"^[-=*]{40,}\s*$", re.MULTILINE)
# The start of output that is not from the program.
_REPORT: Final = re.compile(rf"[-=*]{{40,}}\s*$|\[mpiexec\b|.*{re.escape(_TRACEBACK)}")
_ERROR: Final = re.compile(r"\b(?:ERROR|FATAL|[Ff]atal|(?:[Ee]|\w+E)rror:)")
# Messages of mpirun, torchrun and others about a failed rank, without a cause.
_TRAILER: Final = re.compile(
    r"\s*(?:Primary job|(?:mpirun|mpiexec|prterun|prte) (?:has exited|detected|noticed)|MPI_ABORT was|=\s+BAD TERM"
    r"|YOUR APPLICATION|There are processes|\d+ total process|\S+ FAILED\s*$|Failures:|Root Cause )"
)
_NOISE: Final = re.compile(
    r"\[(?:proxy|mpiexec)\b.*|Connection to \S+ closed.*|.* more process(?:es)? ha(?:s|ve) sent help message.*"
    r"|\[\S+:\d+\] Set MCA parameter.*|.*setpgid\(.*|This typically refers to a problem.*|Please see the FAQ.*"
    r"|Primary job .*|a non-zero exit code\. Per .*|wandb: .*|.*\bNCCL INFO .*|Warning: Permanently added .*"
    r"|\[?[EW]\d{4} .*\b(?:failed \(exitcode|closing signal).*|\[[\d,]+\](?:<\w+>:?)?|pdsh@.* exited with exit code \d+"
    r"|(?>(?:\[\S+\] )*)(?:PMIX ERROR|ORTE_ERROR_LOG): .*|(?:\[\S+\] \*+\s+)?(?:and .* your MPI job.*|Unknown error"
    r"|reported by process .*|MPI_ERRORS_ARE_FATAL .*|on (?:a NULL )?communicator.*)"
)


@cache
def messages(table: str = "logs.yaml") -> tuple[Message, ...]:
    (messages,) = yaml.load_all(get_data(__package__, table) or b"")
    return convert(messages, tuple[Message, ...])


class Raised(NamedTuple):
    """A Python exception, and the position of its traceback."""

    text: str
    start: int
    end: int


def find(log: str) -> Message | None:
    """The message that is the cause.

    Messages before the exception that ended the program are ignored, unless the exception only reports the failure of a
    different process. Messages are also ignored if the program survived them, or if the exception explains them.
    """
    # The time for patterns is quadratic in the length of a line.
    lines = "".join(f"{line[:MAX_LOG_LINE_CHARACTERS]}\n" for line in log.splitlines())
    exception, after = _raised(lines)
    cause = exception if exception and not _SECOND.search(exception.text) else None
    failed = cause.start if cause else 0
    ran = max((match.end() for match in _RAN.finditer(lines)), default=0)
    outputs = [*_outputs(lines)]
    matches = (
        (*_precedence(message, match), message, match)
        for message in messages()
        for match in message.pattern.finditer(lines, max(ran, failed) if message.connecting else failed)
    )
    for lost, _, _, message, match in sorted(matches, key=itemgetter(0, 1, 2)):
        raised = cause is not None and match.start() < cause.end
        following = bisect_left(outputs, (match.end(),))
        if message.survived and not raised and any(went_on for _, went_on in outputs[following : following + 1]):
            continue
        if cause and (message.result or lost) and not _own_line(lines[after : lines.rfind("\n", 0, match.start()) + 1]):
            continue
        named = [group for group in match.groups() if group]
        text = message.text.format(*(shown[:200] for shown in named), *("a worker",) * 2)
        also = f"; before that Python raised: {cause.text}" if cause and (message.result or message.late) else ""
        return replace(message, text=f"{text}{also}")
    return None


def _precedence(message: Message, match: re.Match[str]) -> tuple[bool, bool, int]:
    """A sort key: the order of the log, then `late` messages in the order of the table, then lost connections."""
    shown = " ".join(filter(None, match.groups())) or match[0]
    lost = not message.connecting and _LOST.search(shown) is not None
    return lost, message.late, 0 if message.late else match.end()


def _outputs(lines: str) -> Iterator[tuple[int, bool]]:
    """The start of each line of the program (True), and of each report of a failure (False)."""
    start = 0
    for line in lines.splitlines():
        if _REPORT.match(line):
            yield start, False
        elif any(_texts([line])) and not any(
            message.survived and message.pattern.search(line) for message in messages()
        ):
            yield start, True
        start += len(line) + 1


class ProgramOutput(NamedTuple):
    """The program's last output. Missing texts are empty."""

    exception: str
    last: str
    """The last line. If there is an exception, the last line after the exception."""
    error: str
    """An error message shortly before `last`."""


def program_output(log: str) -> ProgramOutput:
    exception, after = _raised(log)
    lines = [*islice(_own_lines(log[after:]), MAX_LINES_WITH_ERRORS)]
    number = next((number for number, text in enumerate(lines) if _ERROR.search(text)), 0)
    error = lines[number] if number else ""
    if error.endswith(":"):  # a heading
        error = f"{error} {lines[number - 1]}" if number > 1 else ""
    return ProgramOutput(
        exception.text if exception else "", "".join(lines[:1]) if lines or exception else last(log), error
    )


def _raised(log: str) -> tuple[Raised | None, int]:
    """The exception that ended the program, and the end of the last traceback.

    The last exception usually ended the program: a program that continues has caught the earlier exceptions. But
    exceptions directly before the last one may be from ranks that failed earlier. An exception that only reports the
    failure of a different process is returned only if there is no other exception.
    """
    tracebacks = [*_tracebacks(log)]
    if not tracebacks:
        return None, 0
    primary = [raised for raised in tracebacks if not _SECOND.search(raised.text)]
    uncaught = (raised for raised in primary if _UNCAUGHT.match(raised.text))
    cause = next(uncaught, primary[-1] if primary else tracebacks[0])
    for earlier, following in reversed([*pairwise(tracebacks)]):
        if following.start <= cause.start:
            if _own_line(log[earlier.end : following.start]):
                break
            cause = earlier if earlier in primary else cause
    return cause, max(raised.end for raised in tracebacks)


def _tracebacks(log: str) -> Iterator[Raised]:
    """The exceptions in the log. Only the last of chained exceptions is used: the program has caught the others."""
    lines = log.splitlines(keepends=True)
    places = [0, *accumulate(map(len, lines))]
    for first, line in enumerate(lines):
        prefix, header, _ = line.partition(_TRACEBACK)
        text, end = "", 0
        for number in range(first + 1, len(lines) if header else 0):
            rest = lines[number].removeprefix(prefix)
            if not lines[number].startswith(prefix) or not rest.strip() or rest[0].isspace():
                continue
            if text and not rest.startswith(_CHAINED):
                break
            text, end = f"{prefix.strip(' |+')} {rest.strip()}".strip() if _EXCEPTION.match(rest) else "", number + 1
        if text:
            yield Raised(text, places[first], places[end])


def _own_lines(log: str) -> Iterator[str]:
    parts = (part for part in reversed(_RULE.split(log)) if not _TRAILER.match(part))
    return (text for part in parts for text in _texts(part.splitlines()[::-1]))


def _own_line(log: str) -> str:
    return next(_own_lines(log), "")


def last(log: str) -> str:
    """The program's last line, or the report of MPI_Abort if the program wrote no line."""
    return _own_line(log) or next((text for text in _texts(log.splitlines()) if "MPI_ABORT" in text), "")


def _texts(lines: Iterable[str]) -> Iterator[str]:
    texts = (line.strip(" -*=|+\t\r\0") for line in lines)
    return (text for text in texts if text and not _NOISE.fullmatch(text))
