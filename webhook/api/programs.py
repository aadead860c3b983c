"""The programs that a container starts, as far as its command line shows them."""

import re
from typing import Final

from webhook.api import shell
from webhook.api.pod import Container

_QUOTED: Final = re.compile(r""""(?>(?:[^"\\]++|\\.)*)"|'[^']*+'""", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\n;&|(){}]+")
# Parts of a word that a shell replaces: an arithmetic expression, a variable, the output of commands.
_NUMBER: Final = re.compile(r"\$\(\([^()]*+(?>(?:\([^()]*+\)[^()]*+)*)\)\)|\$\{[^{}$]*+\}")
_SUBSTITUTED: Final = re.compile(r"\$\(([^()]*+)\)|`([^`]*+)`")
# Shell built-ins that start no program.
_BUILT_IN: Final = frozenset(
    (
        *(":", "[", "[[", "alias", "break", "case", "cd", "continue", "declare", "done", "echo", "esac", "exit"),
        *("export", "false", "fi", "for", "function", "in", "local", "printf", "pwd", "read", "return", "set"),
        *("shift", "shopt", "test", "trap", "true", "ulimit", "umask", "unset", "wait"),
    )
)
TOOLS: Final = frozenset(
    (
        *("awk", "cat", "chmod", "cp", "cut", "date", "df", "free", "getent", "grep", "head", "host", "hostname"),
        *("id", "ls", "mkdir", "nc", "nproc", "nslookup", "nvidia-smi", "pwd", "sed", "sleep", "sort", "ssh", "tail"),
        *("tee", "touch", "wc", "whoami"),
    )
)
"""Programs that start no ranks and no sshd, and do not read the user's variables."""
INSTALLERS: Final = frozenset(
    (
        *("apk", "apt", "apt-get", "conda", "curl", "dnf", "git", "mamba", "micromamba", "microdnf", "pip", "pip3"),
        *("source", "tar", "unzip", "uv", "wget", "yum"),
    )
)
"""Programs that start no ranks and no sshd. They may read the user's variables and write files."""
_READS_MORE: Final = shell.SHELLS | {".", "eval", "source"}
# Files that only define variables and functions for the shell.
_OF_ENVIRONMENTS: Final = re.compile(r"(?:\.|source) (?:\S*/)?(?:activate|conda\.sh|\.?bashrc|\.?profile|setvars\.sh)")


def started_by(container: Container) -> frozenset[str] | None:
    """The programs' names without folders; None if the image, a file or a variable may start more programs."""
    if not container.command:
        return None
    command = shell.command(container.argv)
    if command.program not in shell.SHELLS:
        return _names(" ".join(command.words))
    if len(command.words) == 1:
        return frozenset((command.program,))
    script = shell.plain(command.script)
    if not script or shell.has_here_document(script):
        return None
    plain = _NUMBER.sub("$", shell.REDIRECTION.sub(" ", _QUOTED.sub("''", script)))
    inner = [first or second for first, second in _SUBSTITUTED.findall(plain)]
    programs: set[str] = set()
    for part in filter(str.strip, _BETWEEN.split("\n".join((_SUBSTITUTED.sub("$", plain), *inner)))):
        names = _names(part)
        if names is None:
            return None
        programs |= names
    return frozenset(programs or {command.program})


def _names(command: str) -> frozenset[str] | None:
    """The program of one command: empty for a shell built-in, None if the command may start more programs."""
    words = command.split()
    while words and words[0] in shell.KEYWORDS:
        del words[0]
    words = shell.without_starters(words)
    name = words[0].rpartition("/")[2]
    if words[0] in {".", "source"} and _OF_ENVIRONMENTS.fullmatch(" ".join(words[:2])):
        return frozenset(("source",))
    if "$" in name or name == "''" or name in _READS_MORE or name.endswith(".sh") or "/init.d/" in words[0]:
        return None
    return frozenset() if words[0] in _BUILT_IN or (not name and command) else frozenset((name,))
