"""Violations of the rule `pod-template` by the valid job `GOOD` with changes in its worker template."""

from collections.abc import Mapping
from typing import Any

from tests.support.rule_checks import violations
from tests.support.snapshots import head
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView

SPEC = "Worker.template.spec"
BOX = f"{SPEC}.containers.0"
# The prefix of all paths in violations.
_START = "spec.mpiReplicaSpecs[Worker].template."

NO_RANGES = Snapshot([head("limitranges")])


def told(changes: Mapping[str, Any], view: ClusterView = NO_RANGES) -> list[str]:
    """`path: message. fix` for each violation, with the path below the worker's template. Advice is marked."""
    return [
        f"{'(advice) ' if each.advisory else ''}{each.path.removeprefix(_START)}: {each.message}. {each.fix}"
        for each in violations("pod-template", changes, view=view)
    ]
