"""Reads command lines: the script of a shell, the words of a command, and the program that `env` starts.

Only variables with exactly one possible value are expanded.
"""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from webhook.api.limits import MAX_CHARACTERS_BEFORE_PROGRAM, MAX_WORDS_OF_STARTERS

SHELLS: Final = frozenset(("sh", "ash", "bash", "dash", "ksh", "zsh"))
KEYWORDS: Final = ("!", "{", "do", "elif", "else", "if", "then", "until", "while")
"""Keywords of the shell that precede a command."""

# Programs that start another program, in three parts: their names, options whose value is the next word (None: options
# are not read), and words that must follow.
_STARTERS: Final = (
    ("command|exec|nohup|setsid", None, ""),
    ("busybox|catatonit|dumb-init|env|stdbuf|tini", "", ""),
    ("time", "-[fo]", ""),
    ("nice|ionice", "-[cn]", ""),
    ("numactl", "-[CNPimp]|--(?:cpunodebind|interleave|membind|physcpubind|preferred)", ""),
    ("taskset", "", r"[ \t]+[\da-fx,-]+"),
    ("timeout", "-[ks]", r"[ \t]+[\d.]+[smhd]?"),
    ("gosu|su-exec", "", r"[ \t]+\S+"),
    ("runuser|sudo", "-[gu]", ""),
    (r"(?:conda|mamba|micromamba)[ \t]+run", "-[np]|--(?:name|prefix)", ""),
    (r"(?:pipenv|poetry|uv)[ \t]+run", None, ""),
    ("xvfb-run", "-[efnps]", ""),
    (r"nsys[ \t]+profile", "-[cdefostwxy]", ""),
)


def _started_by(names: str, valued: str | None, following: str) -> str:
    with_value = rf"(?:{valued})[ \t]+\S+|" if valued else ""
    options = "" if valued is None else rf"(?>(?:[ \t]+(?:{with_value}-\S+))*)"
    return f"(?:{names}){options}{following}"


_STARTER: Final = rf"(?:[^\s;&|()]*/)?(?:{'|'.join(_started_by(*starter) for starter in _STARTERS)})"
STARTS: Final = rf"(?>(?:(?:{_STARTER}|[A-Za-z_]\w*=[^\s;&|()]*)[ \t]+)*)"
"""Matches what may precede a command: assignments, and programs that start another program, with their options."""
_STARTS: Final = re.compile(STARTS)
_NAMES_OF_STARTERS: Final = frozenset(re.findall(r"[a-z][a-z-]+", " ".join(names for names, _, _ in _STARTERS)))
_BLANKS: Final = re.compile(r"\s")

VARIABLE: Final = re.compile(r"\$(?:\{(\w+)([^}]*+)\}|(\w+))")
"""`$NAME`, or `${NAME}` with or without more text before the closing brace."""
REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*+)\)")
"""`$(NAME)`, which Kubernetes replaces, and `$$`, which is the escape for `$`."""
_NEEDS_SHELL: Final = re.compile(r"[|&;<>$`\n*]")
_PLAIN: Final = re.compile(r"[\w./:,@%+=-]+", re.ASCII)
_DEFAULT: Final = re.compile(r":?-([\w./:,@%+-]++)")
_ASSIGNED: Final = re.compile(
    r"""(?:\A|[\n;])[ \t]*(?:(?:export|readonly|(?:declare|typeset)(?>(?:[ \t]+-\w+)*))[ \t]+)?"""
    r"""(\w+)=(['"]?)(?:([\w./:,@%+-]+)|\$\{\1:?-([\w./:,@%+-]+)\})\2"""
    r"(?=[ \t]*(?:[\n;&]|\Z))"
)
_NAME: Final = re.compile(r"(?<![\w$])(?<!\$\{)[A-Za-z_]\w*")
# Commands that may set any variable, and branches: an assignment in a branch possibly never runs.
_OTHER_SCRIPT: Final = re.compile(r"\b(?:eval|source)\b|(?:\A|[\n;&|])[ \t]*\.[ \t]")
_BRANCH: Final = re.compile(r"\b(?:case|for|function|if|select|until|while)\b|\(\)|&&|\|\|")

_PARTS: Final = r"""(?>(?:[^\s;&|()<>'"\\`#]++|\\.|'[^']*+'|"(?>(?:[^"\\`]++|\\.)*)"|(?<!\s)\#)+)"""
_REDIRECTION: Final = rf"(?:\d|&)?(?:>>|>\||<>|>|<<<|<)(?:&(?:\d|-)|[ \t]*+{_PARTS})"
_WORD: Final = re.compile(rf"[ \t]*+(?:{_REDIRECTION}|({_PARTS}))", re.DOTALL)
REDIRECTION: Final = re.compile(_REDIRECTION, re.DOTALL)
_QUOTING: Final = re.compile(r"""['"]|\\(.)""", re.DOTALL)
# Comments, and a backslash at the end of a line: a shell removes both. The group matches quoted text, which stays.
_LEFT_OUT: Final = re.compile(
    r"""('[^']*+'|"(?>(?:[^"\\]++|\\.)*)"|\\[^\n])|\\\n|(?:^|(?<=[\s;&|()]))\#[^\n]*+""", re.DOTALL
)


def word_list(command: str) -> list[str]:
    """A command line as a container's list of words. A shell is added if the command line needs one."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[3:] and words[1].startswith("-") and words[1].endswith("c"):  # the script after -c has no quotes
        return [*words[:2], command.split(None, 2)[2]]
    needs_shell = _NEEDS_SHELL.search(command) and not (words[1:2] and words[1].startswith("-") and "c" in words[1])
    return ["/bin/sh", "-c", command] if needs_shell or not words else words


def unwrapped(argv: Sequence[str]) -> Sequence[str]:
    """The words without leading `env A=B`, `timeout 1h`, `tini --` and similar programs."""
    if not argv or not _is_starter(argv[0]):
        return argv
    start = "".join(
        f"{_BLANKS.sub('_', word[:MAX_CHARACTERS_BEFORE_PROGRAM])} " for word in argv[:MAX_WORDS_OF_STARTERS]
    )
    starters = _STARTS.match(start)
    return argv[starters[0].count(" ") :] if starters else argv


def without_starters(words: list[str]) -> list[str]:
    """The words without leading programs that only start another program; never empty."""
    return words if words and not _is_starter(words[0]) else _STARTS.sub("", f"{' '.join(words)} ", count=1).split(" ")


def _is_starter(word: str) -> bool:
    """Whether STARTS may match a command with this first word."""
    return "=" in word or word.rpartition("/")[2] in _NAMES_OF_STARTERS


def plain(script: str) -> str:
    """The script without comments and line continuations."""
    return _LEFT_OUT.sub(r"\1", script) if "#" in script or "\\" in script else script


def has_here_document(script: str) -> bool:
    """Whether the script has a here-document. The lines of a here-document are not necessarily commands."""
    return "<<" in script and "<<" in script.replace("<<<", "")


def script(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The script after the shell's option `-c` (or `-lc`, `-ec`, ...), or "", and the words after the script."""
    position, by_c = 1, False
    while position < len(argv) and (option := argv[position])[:1] in {"-", "+"}:
        position += 1
        if option in {"-", "--"}:
            break
        if option.startswith("--"):
            position += option in {"--rcfile", "--init-file"}
            continue
        by_c |= option[0] == "-" and "c" in option
        position += "o" in option or "O" in option  # skip the name of the shell option
    return (argv[position], argv[position + 1 :]) if by_c and position < len(argv) else ("", ())


class Command(msgspec.Struct, frozen=True, gc=False):
    """The command line of a container."""

    argv: Sequence[str]
    words: Sequence[str]
    """All words without leading programs that only start another program."""
    program: str
    """The name without folder; empty without words."""
    script: str
    """The text after a shell's option `-c`; otherwise empty."""
    rest: Sequence[str]
    """The words after the script."""


def command(argv: Sequence[str]) -> Command:
    words = unwrapped(argv)
    program = words[0].rpartition("/")[2] if words else ""
    return Command(argv, words, program, *(script(words) if program in SHELLS else ("", ())))


def words(script: str, position: int, limit: int) -> tuple[list[str], int]:
    """The words of the command at `position`, and the position of their end.

    The words end at an operator, a line end, or an expansion.
    """
    command_words = []
    while match := _WORD.match(script, position, limit):
        position = match.end()
        if word := match[1]:
            command_words.append(_QUOTING.sub(r"\1", word) if "'" in word or '"' in word or "\\" in word else word)
    return command_words, position


def is_plain(value: str) -> bool:
    """Whether a shell leaves the value unchanged."""
    return _PLAIN.fullmatch(value) is not None


class Variables:
    """Variables that have the same value throughout a script."""

    def __init__(self, script: str, env: Mapping[str, str | None], *, complete: bool) -> None:
        """`env` has None for unknown values. Without `complete` the container may have more variables."""
        self._env = env
        # A name without a dollar sign may be an assignment.
        self._written = Counter(_NAME.findall(script))
        self._complete = complete and not _OTHER_SCRIPT.search(script)
        self._values: dict[str, tuple[int, str | None]] = {}
        if not _OTHER_SCRIPT.search(script):
            branch = _BRANCH.search(script)
            self._values = {name: (0, value) for name, value in env.items() if not self._written[name]}
            for assignment in _ASSIGNED.finditer(script, 0, branch.start() if branch else len(script)):
                name, _, value, default = assignment.groups()
                if self._written[name] == 1:
                    self._values[name] = assignment.end(), value or env.get(name, default if complete else None)

    def replaced(self, word: str, position: int) -> str:
        """The word with the values of variables at this position in the script."""
        return VARIABLE.sub(lambda reference: self._value(reference, position), word)

    def _value(self, reference: re.Match[str], position: int) -> str:
        name, rest = reference[1] or reference[3], reference[2] or ""
        default = _DEFAULT.fullmatch(rest)
        start, value = self._values.get(name, (0, None))
        if value and start <= position and (default or not rest):
            return value
        return default[1] if default and self.is_unset(name) else reference[0]

    def is_unset(self, name: str) -> bool:
        """Whether neither the script nor the container sets the variable."""
        return self._complete and name not in self._env and not self._written[name]
