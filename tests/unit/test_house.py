"""What holds for the tests themselves: where they are, and what they import."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from tests.support.injecting import module_of_tests
from tests.support.paths import ROOT
from webhook import injections, rules

TESTS = ROOT / "tests"
SUPPORT = sorted(path for path in (TESTS / "support").rglob("*.py") if path.read_text())


@pytest.mark.parametrize("rule", rules.REGISTRY.values(), ids=list(rules.REGISTRY))
def test_every_rule_has_its_file_and_its_test_file(rule: rules.Rule) -> None:
    name = rule.id.replace("-", "_")
    assert rule.check.__module__ == f"webhook.rules.{name}"
    assert (TESTS / "unit" / "rules" / f"test_{name}.py").exists()


@pytest.mark.parametrize("injection", injections.REGISTRY.values(), ids=list(injections.REGISTRY))
def test_every_injection_has_its_file_and_its_test_file(injection: injections.Injection) -> None:
    assert injection.inject.__module__ == f"webhook.injections.{injection.id.replace('-', '_')}"
    assert (ROOT / module_of_tests(injection.id).replace(".", "/")).with_suffix(".py").exists()


@pytest.mark.parametrize(("package", "registry"), [(rules, rules.REGISTRY), (injections, injections.REGISTRY)])
def test_every_file_is_a_rule_or_an_injection(package: ModuleType, registry: Mapping[str, object]) -> None:
    """And no test file is left of what has gone."""
    names = {entry.replace("-", "_") for entry in registry}
    assert {module.name for module in iter_modules(package.__path__)} == names | {"limits"}
    tests = TESTS / "unit" / package.__name__.rpartition(".")[2]
    assert {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")} <= names


def test_what_tests_share_is_imported_from_support_alone() -> None:
    """Neither from a conftest nor from another test."""
    found = [
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("*.py")
        if re.search(r"^\s*(from|import) tests\.\S*\b(conftest|test_\w+)\b", path.read_text(), re.MULTILINE)
    ]
    assert found == []


@pytest.mark.parametrize("path", SUPPORT, ids=lambda path: str(path.relative_to(TESTS / "support")))
def test_every_support_module_says_what_it_holds(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
