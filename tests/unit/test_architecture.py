"""The rooms are those that docs/architecture.md and the import contract name, and each says what it is for."""

import ast
import re
from pathlib import Path

import pytest

from tests.support import architecture
from tests.support.paths import ROOT

ROOMS = [room for floor in architecture.floors() for room in floor]
PACKAGES = sorted(
    path.parent
    for top in ("webhook", architecture.LIBRARY)
    for path in (ROOT / top).rglob("__init__.py")
    # The docstring of an injection, also of one that is a package, explains it to users.
    if path.parent != ROOT / "webhook" and path.parent.parent != ROOT / "webhook" / "injections"
)


def test_nothing_is_in_webhook_but_the_rooms_of_the_contract() -> None:
    found = {path.name for path in (ROOT / "webhook").iterdir() if path.name != "__pycache__"}
    assert found == {*ROOMS, "__init__.py", "__main__.py", "limits.py", "work_limit.py"}
    assert len(ROOMS) == len(set(ROOMS))


def test_no_room_is_called_pure_that_is_none() -> None:
    assert architecture.pure() < set(ROOMS)


def test_every_room_is_described() -> None:
    assert set(architecture.captions()) == {*ROOMS, architecture.LIBRARY}
    assert architecture.captions()["cli"] == "the command: one file a command"


def test_every_path_that_is_named_exists() -> None:
    named = re.findall(r"`((?:webhook|certs|tests|manifests)/[\w/.-]*)`", architecture.PAGE.read_text(encoding="utf-8"))
    assert len(set(named)) > len(ROOMS)
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("room", sorted({*ROOMS, architecture.LIBRARY} - {"kit", "cli"}))
def test_every_room_has_a_part_in_what_the_page_tells(room: str) -> None:
    top = room if room == architecture.LIBRARY else f"webhook/{room}"
    assert f"`{top}/" in architecture.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_says_what_lives_there_in_three_to_eight_lines(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert 3 <= len(text.splitlines()) <= 8


def test_arrows_lead_downwards_and_say_nothing_twice() -> None:
    imported = architecture.imports()
    drawn = architecture.arrows(imported)
    floor = {room: number for number, rooms in enumerate(architecture.floors()) for room in rooms}
    assert all(floor[room] < floor[other] for room, other in drawn if other != architecture.LIBRARY)
    assert imported[architecture.LIBRARY] == set()
    assert ("cli", "server") in drawn
    assert ("cli", "api") not in drawn
