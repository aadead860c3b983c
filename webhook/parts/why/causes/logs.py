"""Reads the log of a program that failed, as a person would. The messages that it knows are in `logs.yaml`."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, islice, pairwise
from pkgutil import get_data
from typing import Final, NamedTuple

from msgspec import Struct, convert
from msgspec.structs import replace

from webhook.api import yaml
from webhook.parts.why.limits import MAX_LINES_WITH_ERRORS, MAX_LOG_LINE_CHARACTERS


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """A message and its meaning."""

    id: str
    patterns: tuple[str, ...]
    text: str
    fix: str = ""
    rules: frozenset[str] = frozenset()
    early: bool = False
    """The launcher may have started before its workers."""
    passes: bool = False
    """It may be over without any change."""
    connecting: bool = False
    """It comes before the ranks start."""
    survived: bool = False
    """A program may go on after it."""
    late: bool = False
    """mpirun or torchrun reports it, mostly after the cause; in the table each is the cause of those below it."""
    result: bool = False
    """It may follow from an exception, of another rank too: it counts if the program went on after that."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """All patterns in one, which `re` keeps."""
        return re.compile("|".join(self.patterns))


OF_SSHD: Final = frozenset({"wrong-key", "ssh-closed", "no-sshd", "no-daemon"})
"""Causes for which the log of the worker's sshd may have details."""
BY_SSHD: Final = frozenset({"strict-modes", "sshd-chroot", "sshd-pam", "no-host-keys", "sshd-directory"})
"""What that log then says."""

_RAN: Final = re.compile(
    r"Primary job  terminated|(?:mpirun|mpiexec|prterun|prte) detected that one|noticed that process rank"
    r"|BAD TERMINATION"
)
# Exceptions that only say that something else failed.
_SECOND: Final = re.compile(
    r"ChildFailed|CalledProcess|NCCL|\bMPI|[Hh]orovod|\b(?:ssh|SSH)\b|Connection (?:closed|reset)"
    r"|DistBackend|killed by signal"
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(r"(?!(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b)[A-Za-z_][\w.]*(?::|$)")
_UNCAUGHT: Final = re.compile(r"\[rank\d+\]:")  # which PyTorch writes before what ends a rank
_CHAINED: Final = ("During handling of the above", "The above exception was")
_RULE: Final = re.compile(r"^[-=*]{40,}\s*$", re.MULTILINE)
# From here on the output is not the program's.
_REPORT: Final = re.compile(rf"[-=*]{{40,}}\s*$|\[mpiexec\b|.*{re.escape(_TRACEBACK)}")
_ERROR: Final = re.compile(r"\b(?:ERROR|FATAL|[Ff]atal|(?:[Ee]|\w+E)rror:)")
# Messages of mpirun, torchrun and similar programs about a failed rank, without its cause.
_TRAILER: Final = re.compile(
    r"\s*(?:Primary job|(?:mpirun|mpiexec|prterun|prte) (?:has exited|detected|noticed)|MPI_ABORT was|=\s+BAD TERM"
    r"|YOUR APPLICATION|There are processes|\d+ total process|\S+ FAILED\s*$|Failures:|Root Cause )"
)
_NOISE: Final = re.compile(
    r"\[(?:proxy|mpiexec)\b.*|Connection to \S+ closed.*|.* more process(?:es)? ha(?:s|ve) sent help message.*"
    r"|\[\S+:\d+\] Set MCA parameter.*|.*setpgid\(.*|This typically refers to a problem.*|Please see the FAQ.*"
    r"|Primary job .*|a non-zero exit code\. Per .*|wandb: .*|.*\bNCCL INFO .*|Warning: Permanently added .*"
    r"|\[?[EW]\d{4} .*\b(?:failed \(exitcode|closing signal).*|\[[\d,]+\](?:<\w+>:?)?|pdsh@.* exited with exit code \d+"
    r"|(?:\[\S+\] )*+(?:PMIX ERROR|ORTE_ERROR_LOG): .*|(?:\[\S+\] \*+\s+)?(?:and .* your MPI job.*|Unknown error"
    r"|reported by process .*|MPI_ERRORS_ARE_FATAL .*|on (?:a NULL )?communicator.*)"
)


@cache
def messages(table: str = "logs.yaml") -> tuple[Known, ...]:
    """All that are known."""
    (messages,) = yaml.load_all(get_data(__package__, table) or b"")
    return convert(messages, tuple[Known, ...])


class Raised(NamedTuple):
    """A Python exception, and the place of its traceback in the log."""

    text: str
    start: int
    end: int


def known(log: str) -> Known | None:
    """The first message in the log that the job did not survive, with its names filled in."""
    # Patterns look back within a line, so a long one would take its square.
    lines = "".join(f"{line[:MAX_LOG_LINE_CHARACTERS]}\n" for line in log.splitlines())
    exception, after = _raised(lines)
    own = exception if exception and not _SECOND.search(exception.text) else None
    failed = own.start if own else 0
    ran = max((found.end() for found in _RAN.finditer(lines)), default=0)
    outputs = [*_outputs(lines)]
    matches = (
        (each, found)
        for each in messages()
        for found in each.pattern.finditer(lines, max(ran, failed) if each.connecting else failed)
    )
    for each, found in sorted(matches, key=lambda pair: math.inf if pair[0].late else pair[1].end()):
        raised = own is not None and found.start() < own.end
        following = bisect_left(outputs, (found.end(),))
        if each.survived and not raised and any(went_on for _, went_on in outputs[following : following + 1]):
            continue
        if own and each.result and not _own_line(lines[after : lines.rfind("\n", 0, found.start()) + 1]):
            continue
        named = [group for group in found.groups() if group]
        text = each.text.format(*(shown[:200] for shown in named), *("a worker",) * 2)
        also = f"; before that Python raised: {own.text}" if own and (each.result or each.late) else ""
        return replace(each, text=f"{text}{also}")
    return None


def _outputs(lines: str) -> Iterator[tuple[int, bool]]:
    """The lines of the program itself (True), and the lines at which a report of a failure begins (False)."""
    start = 0
    for line in lines.splitlines():
        if _REPORT.match(line):
            yield start, False
        elif any(_texts([line])) and not any(each.survived and each.pattern.search(line) for each in messages()):
            yield start, True
        start += len(line) + 1


class Said(NamedTuple):
    """The last output of the program itself before it failed; empty if there is none."""

    exception: str
    """The Python exception that is the cause."""
    last: str
    """The last line, or the last one after the exception."""
    error: str
    """A line shortly before that one which is called an error."""


def said(log: str) -> Said:
    """What the log has of these."""
    exception, after = _raised(log)
    own = [*islice(_own_lines(log[after:]), MAX_LINES_WITH_ERRORS)]
    number = next((number for number, text in enumerate(own) if _ERROR.search(text)), 0)
    error = own[number] if number else ""
    if error.endswith(":"):  # a heading
        error = f"{error} {own[number - 1]}" if number > 1 else ""
    return Said(exception.text if exception else "", "".join(own[:1]) if own or exception else last(log), error)


def _raised(log: str) -> tuple[Raised | None, int]:
    """The exception that counts, with the rank where the line has one, and where the last traceback ends.

    A program that goes on after an exception has caught it, so the last one counts. Those that come right before it may
    be of ranks that failed first, and some only say that another rank or program did.
    """
    tracebacks = [*_tracebacks(log)]
    if not tracebacks:
        return None, 0
    own = [each for each in tracebacks if not _SECOND.search(each.text)]
    found = next((each for each in own if _UNCAUGHT.match(each.text)), own[-1] if own else tracebacks[0])
    for each, following in reversed([*pairwise(tracebacks)]):
        if following.start <= found.start:
            if _own_line(log[each.end : following.start]):
                break
            found = each if each in own else found
    return found, max(each.end for each in tracebacks)


def _tracebacks(log: str) -> Iterator[Raised]:
    """Each with the exception that was not caught: of several that were raised one in the other, the last."""
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
    """What the program itself wrote, the last line first."""
    parts = (part for part in reversed(_RULE.split(log)) if not _TRAILER.match(part))
    return (text for part in parts for text in _texts(part.splitlines()[::-1]))


def _own_line(log: str) -> str:
    return next(_own_lines(log), "")


def last(log: str) -> str:
    """The last line of the program itself, else that of MPI_Abort."""
    return _own_line(log) or next((text for text in _texts(log.splitlines()) if "MPI_ABORT" in text), "")


def _texts(lines: Iterable[str]) -> Iterator[str]:
    texts = (line.strip(" -*=|+\t\r\0") for line in lines)
    return (text for text in texts if text and not _NOISE.fullmatch(text))
