"""Mistakes in jobs, as changes for `tests.support.jobs.changed`. The documentation shows the mistakes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.bad_jobs.written import full_path
from tests.support.jobs import REMOVE
from webhook.api import yaml

_WRITTEN: Final = yaml.load_all(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))[0]
BREAKS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{
        mistake: {full_path(path): REMOVE if value is None else value for path, value in changes.items()}
        for mistake, changes in _WRITTEN.items()
    },
    "more than a megabyte of text": {full_path("first.args"): ["x" * 2**20]},
}
