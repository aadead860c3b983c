"""Reads policy files from a revision of their git repository.

Only git's object store is read: nothing is checked out, and no hook, filter or attribute of the repository runs.
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
from webhook.cli.policy.documents import PolicyFiles


class RevisionError(ValueError):
    """The files cannot be read at a revision. The message has the reason."""


def load(arguments: Iterable[str], revision: str) -> tuple[PolicyFiles, str]:
    """(policies, revision for people) of files and folders at a revision; RevisionError if they cannot be read."""
    policies, title = PolicyFiles(), revision
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
                raise RevisionError(f"{argument}: no file or folder with policies at {title}")
            _add(documents.load(map(str, names)), policies, f"{within}/", f"{revision}:")
    return policies, title


def _add(contents: PolicyFiles, result: PolicyFiles, before: str, instead: str) -> None:
    """Add `contents` to `result`. The names of temporary files are replaced by the names in the repository."""
    result.policies += [
        replace(policy, name=policy.name.replace(before, instead), title=policy.title.replace(before, instead))
        for policy in contents.policies
    ]
    result.others += [other.replace(before, instead) for other in contents.others]
    result.errors += [ManifestError(str(error).replace(before, instead)) for error in contents.errors]


def _top(path: Path) -> Path:
    """The top folder of the repository. The file at `path` may no longer exist."""
    folder = next(each for each in (path, *path.parents) if each.is_dir())
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise RevisionError(f"{path} is not in a git repository that git reads for you")
    return Path(top.decode().rstrip("\n"))


def _commit(top: Path, revision: str) -> str:
    output = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if output is None:
        raise RevisionError(f'there is no revision "{revision}" in {top}: `git -C {top} log --oneline` lists them')
    return output.decode().split()[-1]


def _written(top: Path, commit: str, path: Path, into: Path) -> Iterator[Path]:
    """Write each policy file under `path` to a file below `into`. Return the new files."""
    name = path.resolve().relative_to(top.resolve()).as_posix()
    inside = [] if name == "." else [name, f"{name}/"]
    listed = _git(top, "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *inside) or b""
    for stored in listed.decode(errors="surrogateescape").split("\0"):
        if stored != name and PurePosixPath(stored).suffix not in SUFFIXES:
            continue
        content = _git(top, "cat-file", "blob", f"{commit}:{stored}")
        if content is not None:  # None for a folder
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
