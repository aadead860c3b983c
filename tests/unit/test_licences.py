"""The licences of installed packages allow redistribution."""

from importlib.metadata import PackageNotFoundError, metadata

import pytest

from tests.support.paths import DOCS
from tools.release import licences, page_packages


@pytest.mark.parametrize("package", licences.locked())
def test_every_licence_is_allowed(package: str) -> None:
    try:
        found = licences.names(licences.licence(metadata(package)))
    except PackageNotFoundError:
        pytest.skip("the package is for another Python version or operating system")
    assert found
    assert found <= licences.ALLOWED


@pytest.mark.parametrize("package", page_packages.packages(), ids=lambda package: package.name)
def test_licence_of_every_package_in_the_page_is_allowed(package: page_packages.Package) -> None:
    found = licences.names(package.licence)
    assert found
    assert found <= licences.ALLOWED


def test_packages_of_the_page_exclude_build_tools() -> None:
    found = {package.name: package.component() for package in page_packages.packages()}
    assert "esbuild" not in found
    view = found["@codemirror/view"]
    assert view["purl"] == f"pkg:npm/%40codemirror/view@{view['version']}"
    assert [(each["alg"], len(each["content"])) for each in view["hashes"]] == [("SHA-512", 128)]


def test_forbidden_licence_is_found() -> None:
    assert licences.names("MIT AND (GPL-3.0-only OR BSD-3-Clause)") - licences.ALLOWED == {"GPL-3.0-only"}


def test_licence_page_matches_the_generated_table() -> None:
    assert set(licences.table()) <= {*(DOCS / "reference" / "licences.md").read_text().splitlines(), ""}
