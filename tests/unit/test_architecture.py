"""The packages match docs/architecture.md and the import contract, and each docstring describes its package."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
LIBRARY = "certs"


def rooms() -> list[str]:
    """The packages of the import contract, from the top layer down."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (contract["layers"] for contract in config["contracts"] if contract["type"] == "layers")
    named = [room.strip().removeprefix("webhook.") for layer in layers for room in layer.split("|")]
    return [room for room in named if room != "__main__"]


ROOMS = rooms()
PACKAGES = sorted(
    path.parent
    for top in ("webhook", LIBRARY)
    for path in (ROOT / top).rglob("__init__.py")
    # The docstring of an injection, also of one that is a package, explains it to users.
    if path.parent != ROOT / "webhook" and path.parent.parent != ROOT / "webhook" / "injections"
)


def test_webhook_has_only_the_packages_of_the_contract() -> None:
    found = {path.name for path in (ROOT / "webhook").iterdir() if path.name != "__pycache__"}
    assert found == {*ROOMS, "__init__.py", "__main__.py", "limits.py", "work_limit.py"}
    assert len(ROOMS) == len(set(ROOMS))


def test_every_room_is_described() -> None:
    tree = PAGE.partition("```\n")[2].partition("```")[0]
    described = re.findall(r"^ *(\w+)/ +\S", tree, re.MULTILINE)
    assert sorted(described) == sorted([*ROOMS, LIBRARY, "webhook"])


def test_every_path_that_is_named_exists() -> None:
    named = re.findall(r"`((?:webhook|certs|tests|manifests)/[\w/.-]*)`", PAGE)
    assert len(set(named)) > len(ROOMS)
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("room", sorted({*ROOMS, LIBRARY} - {"kit", "cli"}))
def test_every_room_has_a_part_in_what_the_page_tells(room: str) -> None:
    top = room if room == LIBRARY else f"webhook/{room}"
    assert f"`{top}/" in PAGE


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_says_what_lives_there_in_three_to_eight_lines(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert 3 <= len(text.splitlines()) <= 8
