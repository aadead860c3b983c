"""Policy files as they were at a revision of their git repository.

git only reads its store: nothing is checked out, and no hook, filter or attribute of the repository runs.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from webhook.cli.files import STDIN, SUFFIXES, ManifestError
from webhook.cli.limits import MAX_GIT_SECONDS
from webhook.cli.policy import documents
from webhook.cli.policy.documents import Found


class RevisionError(ValueError):
    """The files cannot be read at that revision; the message says why."""


def load(arguments: Iterable[str], revision: str) -> tuple[Found, str]:
    """The policies in files and folders at that revision, and the revision for people.

    RevisionError if they cannot be read.
    """
    policies, title = Found(), revision
    with TemporaryDirectory(prefix="mpijob-policies-") as folder:
        for number, argument in enumerate(arguments):
            if argument == STDIN:
                raise RevisionError("standard input has no revisions: name a file or folder of a git repository")
            path = Path(argument).absolute()
            top = _top(path)
            commit = _commit(top, revision)
            title = revision if commit.startswith(revision) else f"{revision} ({commit[:12]})"
            within = Path(folder, str(number))
            names = list(_written(top, commit, path, within))
            if not names:
                raise RevisionError(f"{argument}: there is no such file or folder of policies at {title}")
            _add(documents.load(map(str, names)), policies, f"{within}/", f"{revision}:")
    return policies, title


def _add(read: Found, found: Found, before: str, instead: str) -> None:
    """Add what was read in a temporary folder, under the names that the files have in the repository."""
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


def _commit(top: Path, revision: str) -> str:
    found = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise RevisionError(f'there is no revision "{revision}" in {top}: `git -C {top} log --oneline` lists them')
    return found.decode().split()[-1]


def _written(top: Path, commit: str, path: Path, into: Path) -> Iterator[Path]:
    """Each file of policies under `path`, written below `into`."""
    name = path.resolve().relative_to(top.resolve()).as_posix()
    inside = [] if name == "." else [name, f"{name}/"]
    listed = _git(top, "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *inside) or b""
    for stored in listed.decode(errors="surrogateescape").split("\0"):
        if stored != name and PurePosixPath(stored).suffix not in SUFFIXES:
            continue
        content = _git(top, "cat-file", "blob", f"{commit}:{stored}")
        if content is not None:  # a folder
            target = into / stored
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            yield target


def _git(folder: Path, *arguments: str) -> bytes | None:
    """The output of git; None if it fails."""
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
