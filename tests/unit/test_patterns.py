"""Regular expressions match the same text in all supported versions of Python."""

import re

import pytest

from tests.support.paths import ROOT

_POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d+,?\d*\})\+")


@pytest.mark.parametrize("package", ["certs", "mpijob_webhook", "webhook"])
def test_no_pattern_repeats_a_group_possessively(package: str) -> None:
    """Python 3.11.0 to 3.11.4 matches `(?:a|b)*+` wrongly, or without end. `(?>(?:a|b)*)` is right in all versions.

    https://github.com/python/cpython/issues/106052
    """
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if _POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
