"""Fixtures of the tests of commands."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import Result

from tests.support import checking
from tests.support.checking import Check
from tests.support.object_api import FakeApi, fake_api
from tests.support.read_paths import empty_lists


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs a command in a folder that has only the given files. `a__b_yaml=content` gives the file a/b.yaml."""
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str,
        stdin: str | bytes | None = None,
        files: Mapping[str, Any] = MappingProxyType({}),
        **named: Any,
    ) -> Result:
        more = {name.replace("__", "/").replace("_", "."): content for name, content in named.items()}
        for name, content in {**files, **more}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return checking.run(*arguments, stdin=stdin)

    return run


@pytest.fixture
def check(program: Check) -> Check:
    return partial(program, "check")


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """An API server with an empty list of each kind of object that commands read."""
    with fake_api() as running:
        running.objects = empty_lists()
        yield running
