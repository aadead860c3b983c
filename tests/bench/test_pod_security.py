"""A short run beside Kubernetes' own webhook: what it measures here means nothing, that it measures does."""

import os
from argparse import Namespace
from io import StringIO

import pytest

from tests.bench.pod_security import GO, TEMPLATE_BYTES, run, template
from tests.controlplane.assets import assets
from tests.controlplane.progress import Progress
from tests.support.samples import rare
from webhook.predict.pod_security import LATEST, Level, evaluate
from webhook.predict.pod_security.pod import convert

assets()  # builds, if nothing is built, before the time limit of a test counts


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_the_template_is_of_the_size_and_level_that_the_table_says(role: str) -> None:
    made = template(7, role)
    assert TEMPLATE_BYTES <= len(str(made)) < TEMPLATE_BYTES * 1.1
    assert evaluate(Level.RESTRICTED, LATEST, convert(made)) == []


@rare
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is for the server, one for the load")
def test_a_short_run_fills_the_table() -> None:
    text = run(Namespace(seconds=0.2, rounds=1, connections=4), Progress(StringIO()))
    lines = text.splitlines()
    assert [line.partition("  ")[0] for line in lines[1:4]] == [GO, "pod-security alone", "all rules"]
    assert all(cell.replace(",", "").replace(".", "").isdigit() for line in lines[1:4] for cell in line.split()[-6:])
    assert lines[-1].startswith("The library alone: ")
