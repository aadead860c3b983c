"""Fixtures that run a command in an empty folder."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.checking import Check
from webhook.cli.main import main


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs a command in an empty folder with these files. `a__b_yaml=content` writes the file a/b.yaml."""
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
        return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def check(program: Check) -> Check:
    return partial(program, "check")
