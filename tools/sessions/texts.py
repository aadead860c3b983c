"""Runs the commands that documentation pages show, and writes the pages and the recorded sessions."""

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
    title: str
    pages: tuple[Path, ...]
    as_user: bool = False
    """False for an administrator."""


def _pages(*names: str) -> tuple[Path, ...]:
    return tuple(DOCS / f"{name}.md" for name in names)


# All sessions use one cluster. The administrator installs the service, so this session comes first.
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
    texts = {}
    for name, session in SESSIONS.items():
        screen = []
        for page in session.pages:
            text = page.read_text(encoding="utf-8")
            parts = stage.play(text, as_user=session.as_user)
            texts[page] = rewritten(text, [played.shown for played in parts if isinstance(played.part, Step)])
            screen += parts
            stage.reset()
        path = FOLDER / f"{name}.txt"
        texts[path] = _kept(path, "".join(_typed(screen)))
        texts[path.with_suffix(".cast")] = as_cast(session.title, texts[path])
    return texts


def _typed(session: list[Played]) -> Iterator[str]:
    """The text on the screen. Headings of sections without commands are left out."""
    heading = ""
    for played in session:
        match played.part:
            case Heading(text):
                heading = f"# {text}\n"
            case File(name):
                yield f"{heading}# ... writes {name}\n"
                heading = ""
            case Step(line) as step if not step.reason:
                yield f"{heading}$ {line}\n{played.output}"
                heading = ""


def _kept(path: Path, text: str) -> str:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    return before if normal(before) == normal(text) else text
