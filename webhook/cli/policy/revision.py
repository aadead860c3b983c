"""Policy files as they were at a revision of the git repository that they are in.

git is only asked what it stores: nothing is checked out, and no hook, filter or attribute of the repository is run.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from webhook.cli.files import STDIN, SUFFIXES, ManifestError
from webhook.cli.limits import MAX_FILE_BYTES, MAX_GIT_SECONDS
from webhook.cli.policy import documents
from webhook.cli.policy.documents import Found

# Branches, tags, hashes, HEAD~2, main@{2 days ago}; never an option, since it does not begin with a dash.
_REVISION: Final = re.compile(r"[\w@][\w./@{}~^+ :-]{0,255}")
_FILE: Final = frozenset({"100644", "100755"})


class RevisionError(ValueError):
    """The files cannot be had at that revision; the message says why."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the files."""

    written: str
    """As the user named it."""
    commit: str
    """Its hash."""

    @property
    def title(self) -> str:
        """For people."""
        return self.written if self.commit.startswith(self.written) else f"{self.written} ({self.commit[:12]})"


def load(arguments: Iterable[str], written: str) -> tuple[Found, Revision]:
    """The policies in files and folders as they were then; RevisionError where that cannot be said."""
    if not _REVISION.fullmatch(written):
        raise RevisionError(f'"{written[:100]}" is no revision of git, such as a branch, a tag or a hash')
    found, revision = Found(), Revision(written, "")
    with TemporaryDirectory(prefix="mpijob-policies-") as folder:
        for number, argument in enumerate(arguments):
            if argument == STDIN:
                raise RevisionError("standard input has no revisions: name a file or folder of a git repository")
            path = Path(argument).absolute()
            top = _top(path)
            revision = Revision(written, _commit(top, written))
            within = Path(folder, str(number))
            within.mkdir()
            names = list(_written(top, revision, path, within))
            if not names:
                raise RevisionError(f"{argument}: there is no such file or folder of policies at {revision.title}")
            _add(documents.load(map(str, names)), found, f"{within}/", f"{written}:")
    return found, revision


def _add(read: Found, found: Found, before: str, instead: str) -> None:
    """What was read in a temporary folder, under the names that the files have in the repository."""
    found.policies += [
        replace(each, name=each.name.replace(before, instead), title=each.title.replace(before, instead))
        for each in read.policies
    ]
    found.others += [other.replace(before, instead) for other in read.others]
    found.errors += [ManifestError(str(error).replace(before, instead)) for error in read.errors]


def _top(path: Path) -> Path:
    """The folder of the repository; the file itself may be gone since."""
    there = next(each for each in (path, *path.parents) if each.is_dir())
    top = _git(there, "rev-parse", "--show-toplevel")
    if top is None:
        raise RevisionError(f"{path} is in no git repository that git reads for you")
    return Path(top.decode().rstrip("\n"))


def _commit(top: Path, written: str) -> str:
    found = _git(top, "rev-parse", "--verify", "--quiet", f"{written}^{{commit}}")
    if found is None:
        raise RevisionError(f'there is no revision "{written}" in {top}: `git -C {top} log --oneline` lists them')
    return found.decode().strip()


def _written(top: Path, revision: Revision, path: Path, into: Path) -> Iterator[Path]:
    """Each file of policies that `path` stood for, written below `into`."""
    name = path.resolve().relative_to(top.resolve()).as_posix()
    inside = [] if name == "." else [name, f"{name}/"]
    listed = _git(top, "ls-tree", "-z", "--full-tree", revision.commit, "--", *inside) or b""
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        about, _, stored = entry.partition("\t")
        mode, _, blob = f"{about}  ".split(" ")[:3]
        if mode not in _FILE or (stored != name and PurePosixPath(stored).suffix not in SUFFIXES):
            continue
        content = _git(top, "cat-file", "blob", blob)
        if content is None or len(content) > MAX_FILE_BYTES:
            raise RevisionError(f"{stored} cannot be read at {revision.title}")
        target = into / stored
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        yield target


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints; None where it fails."""
    program = shutil.which("git")
    if program is None:
        raise RevisionError("git is not installed, or not in PATH")
    command = [program, "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed list, no shell
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=MAX_GIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RevisionError(f"git does not answer: {error}") from None
    return done.stdout if done.returncode == 0 else None
