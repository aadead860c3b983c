"""The pages whose commands are run, and the texts of the pages and recorded sessions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.paths import DOCS
from tools.sessions.comparing import normal
from tools.sessions.page import File, Heading, Step, rewritten
from tools.sessions.record import as_cast
from tools.sessions.stage import Played, Stage

FOLDER: Final = DOCS / "sessions"


@dataclass(frozen=True, slots=True)
class Session:
    """A session in which a user follows some pages."""

    title: str
    pages: tuple[Path, ...]
    as_user: bool = False
    """Whether the user is not an administrator."""


def _pages(*names: str) -> tuple[Path, ...]:
    return tuple(DOCS / f"{name}.md" for name in names)


# In this order, on one cluster: users submit jobs after the administrator has installed the service.
SESSIONS: Final = {
    "administrator": Session(
        "The first two hours of an administrator",
        _pages("roll-out", "install", "write-policies", "exemptions", "operations"),
    ),
    "data-scientist": Session(
        "The first two hours of a data scientist", _pages("first-job", "rejections", "injections"), as_user=True
    ),
}
PAGES: Final = tuple(page for session in SESSIONS.values() for page in session.pages)


def played(stage: Stage) -> Mapping[Path, str]:
    """Every changed file with its new content."""
    found = {}
    for name, session in SESSIONS.items():
        screen = []
        for page in session.pages:
            text = page.read_text(encoding="utf-8")
            parts = stage.play(text, as_user=session.as_user)
            found[page] = rewritten(text, [each.shown for each in parts if isinstance(each.part, Step)])
            screen += parts
            stage.reset()
        path = FOLDER / f"{name}.txt"
        found[path] = _kept(path, "".join(_typed(screen)))
        found[path.with_suffix(".cast")] = as_cast(session.title, found[path])
    return found


def _typed(session: list[Played]) -> Iterator[str]:
    """The text on the screen, without sections that have no commands."""
    heading = ""
    for each in session:
        match each.part:
            case Heading(text):
                heading = f"# {text}\n"
            case File(name):
                yield f"{heading}# ... writes {name}\n"
                heading = ""
            case Step(line) as step if not step.reason:
                yield f"{heading}$ {line}\n{each.output}"
                heading = ""


def _kept(path: Path, text: str) -> str:
    """The new session, or the old recording if only times and random names differ."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    return before if normal(before) == normal(text) else text
