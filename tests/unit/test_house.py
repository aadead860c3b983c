"""Each rule and each injection has a module and a test file."""

from collections.abc import Mapping
from pkgutil import iter_modules
from types import ModuleType

import pytest

from tests.support.injecting import module_of_tests
from tests.support.paths import ROOT
from webhook import injections, rules

TESTS = ROOT / "tests"


@pytest.mark.parametrize("rule", rules.REGISTRY.values(), ids=list(rules.REGISTRY))
def test_every_rule_has_its_file_and_its_test_file(rule: rules.Rule) -> None:
    name = rule.id.replace("-", "_")
    assert rule.check.__module__ == f"webhook.rules.{name}"
    assert (TESTS / "unit" / "rules" / f"test_{name}.py").exists(), f"write tests/unit/rules/test_{name}.py"


@pytest.mark.parametrize("injection", injections.REGISTRY.values(), ids=list(injections.REGISTRY))
def test_every_injection_has_its_file_and_its_test_file(injection: injections.Injection) -> None:
    assert injection.inject.__module__ == f"webhook.injections.{injection.id.replace('-', '_')}"
    path = f"{module_of_tests(injection.id).replace('.', '/')}.py"
    assert (ROOT / path).exists(), f"write {path}"


@pytest.mark.parametrize(("package", "registry"), [(rules, rules.REGISTRY), (injections, injections.REGISTRY)])
def test_every_module_and_test_file_is_for_a_rule_or_an_injection(
    package: ModuleType, registry: Mapping[str, object]
) -> None:
    names = {entry.replace("-", "_") for entry in registry}
    assert {module.name for module in iter_modules(package.__path__)} == names | {"limits"}
    tests = TESTS / "unit" / package.__name__.rpartition(".")[2]
    assert {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")} <= names
