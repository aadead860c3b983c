"""The packages match docs/architecture.md and the import contract, and each package has a docstring."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
LIBRARY = "certs"


def contract_packages() -> list[str]:
    """The packages of the import contract, from the top layer down."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (contract["layers"] for contract in config["contracts"] if contract["type"] == "layers")
    named = [name.strip().removeprefix("webhook.") for layer in layers for name in layer.split("|")]
    return [name for name in named if name != "__main__"]


CONTRACT_PACKAGES = contract_packages()
PACKAGES = sorted(
    path.parent
    for top in ("webhook", LIBRARY)
    for path in (ROOT / top).rglob("__init__.py")
    # This test skips injections that are packages, because their docstrings are written for users.
    if path.parent != ROOT / "webhook" and path.parent.parent != ROOT / "webhook" / "injections"
)


def test_webhook_has_only_the_packages_of_the_contract() -> None:
    found = {path.name for path in (ROOT / "webhook").iterdir() if path.name != "__pycache__"}
    assert found == {*CONTRACT_PACKAGES, "__init__.py", "__main__.py", "limits.py", "work_limit.py"}
    assert len(CONTRACT_PACKAGES) == len(set(CONTRACT_PACKAGES))


def test_page_describes_every_package() -> None:
    tree = PAGE.partition("```\n")[2].partition("```")[0]
    described = re.findall(r"^ *(\w+)/ +\S", tree, re.MULTILINE)
    assert sorted(described) == sorted([*CONTRACT_PACKAGES, LIBRARY, "webhook"])


def test_every_path_in_the_page_exists() -> None:
    named = re.findall(r"`((?:webhook|certs|tests|manifests)/[\w/.-]*)`", PAGE)
    assert len(set(named)) > len(CONTRACT_PACKAGES)
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", sorted({*CONTRACT_PACKAGES, LIBRARY} - {"kit", "cli"}))
def test_text_of_the_page_mentions_every_package(name: str) -> None:
    top = name if name == LIBRARY else f"webhook/{name}"
    assert f"`{top}/" in PAGE


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_package_has_a_docstring_of_three_to_eight_lines(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert 3 <= len(text.splitlines()) <= 8
