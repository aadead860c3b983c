"""Runs Prometheus' promtool on rules and metrics."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.debian import program


def run(*arguments: str | Path, text: str | None = None) -> str:
    """The output of promtool with `text` as standard input. Raises AssertionError with the output if promtool fails."""
    promtool = program("promtool", package="prometheus")
    done = subprocess.run([promtool, *arguments], input=text, capture_output=True, text=True, timeout=170, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def case(
    series: Mapping[str, str], expected: Mapping[str, Mapping[str, float]], *, minutes: int, name: str = ""
) -> dict[str, Any]:
    """A unit test of rules: series with a value per minute, and the samples of each expression after `minutes`."""
    return {
        "interval": "1m",
        "name": name,
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": f"{minutes}m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
            }
            for expression, samples in expected.items()
        ],
    }


def check_rules(groups: list[dict[str, Any]], tests: list[dict[str, Any]], folder: Path) -> None:
    """Run promtool's unit tests on rules with an evaluation interval of a minute."""
    (folder / "rules.json").write_text(json.dumps({"groups": groups}))
    run("check", "rules", folder / "rules.json")
    cases = {"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.json").write_text(json.dumps(cases))
    run("test", "rules", folder / "tests.json")
