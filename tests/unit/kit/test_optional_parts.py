"""The optional parts are the packages in webhook/parts. All are listed, and their references can be resolved."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pkgutil import iter_modules, resolve_name
from typing import Any

import pytest

from tests.support.paths import EXAMPLES
from webhook import parts as package
from webhook.kit.optional_parts import NAMES, parts


def references(value: Any) -> Iterator[str]:
    """Every reference "package.module:name" in a part."""
    if isinstance(value, str) and value.startswith("webhook.parts."):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from references(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from references(each)
    elif is_dataclass(value):
        for each in fields(value):
            yield from references(getattr(value, each.name))


def test_every_part_is_listed() -> None:
    assert sorted(NAMES) == sorted(module.name for module in iter_modules(package.__path__))


@pytest.mark.parametrize("reference", [each for part in parts() for each in references(part)])
def test_reference_of_a_part_can_be_resolved(reference: str) -> None:
    assert resolve_name(reference) is not None


@pytest.mark.parametrize(("name", "part"), [*zip(NAMES, parts(), strict=True)], ids=NAMES)
def test_part_refers_only_to_its_own_modules(name: str, part: Any) -> None:
    assert all(reference.startswith(f"webhook.parts.{name}.") for reference in references(part))


@pytest.mark.parametrize("arguments", [["check", str(EXAMPLES / "openmpi-pi.yaml")], ["serve", "--help"], ["--help"]])
def test_core_works_without_parts(arguments: list[str]) -> None:
    code = (
        "import sys; from webhook.kit import optional_parts; optional_parts.NAMES = ()\n"
        "from webhook.cli.main import main\n"
        f"try: main({arguments!r})\n"
        "finally: print([name for name in sys.modules if name.startswith('webhook.parts')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith("[]\n")
    assert "--trainer" not in done.stdout
