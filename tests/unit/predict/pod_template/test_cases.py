"""The tables of cases in this folder, and cases that are too large for a table."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pod_template import BOX, SPEC, told

CASES = [
    pytest.param(case["changes"], case["faults"], id=f"{path.stem}-{number}")
    for path in sorted(Path(__file__).parent.glob("*.yaml"))
    for number, case in enumerate(yaml.safe_load(path.read_text()))
]


@pytest.mark.parametrize(("changes", "expected"), CASES)
def test_changed_worker_has_the_faults_in_the_table(changes: dict[str, Any], expected: list[str]) -> None:
    assert told({f"Worker.{path}": value for path, value in changes.items()}) == expected


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"Worker.template.metadata.annotations": {"a": "x" * 300000}}, "metadata.annotations: have 300,001 bytes"),
        ({f"{SPEC}.dnsConfig": {"searches": ["a" * 200] * 11}}, "spec.dnsConfig.searches: has more than 2048"),
        ({f"{BOX}.resources": {"limits": {"a" * 400: 2}}}, f"spec.containers[0].resources.limits[{'a' * 97}...]: "),
    ],
)
def test_large_value_gives_a_single_fault(changes: dict[str, Any], start: str) -> None:
    (text,) = told(changes)
    assert text.startswith(start)
