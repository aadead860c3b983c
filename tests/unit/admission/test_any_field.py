"""No list and no mapping of the schema lets a job of a megabyte take long, whether a rule looks at it or not."""

import json

import pytest

from tests.bench.replies.cases import clusters
from tests.support.hostile_fields import TEXTS, Path, Text, fields, filled
from tests.support.samples import sample
from tests.support.steps import calls
from webhook.admission.pipelines import load_policy
from webhook.api.crd_schema import Shape
from webhook.cluster.snapshot import Snapshot

DEFAULTS = load_policy(None)
CLUSTER = Snapshot(clusters()[1])
# As in `test_too_large`: of four reviews.
MOST_CALLS = 3_000_000
# More has too many mappings to be judged at all where an item is short.
LENGTHS = (450_000, 900_000)
EVERY = [(".".join(map(str, path)), path, shape) for path, shape in fields()]


def test_the_fields_are_those_of_the_schema() -> None:
    named = {name.removeprefix("spec.mpiReplicaSpecs.Worker.template.") for name, _, _ in EVERY}
    assert {
        "metadata.ownerReferences",
        "spec.containers.0.env",
        "spec.volumes.0.ephemeral.volumeClaimTemplate.spec.resources.requests",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector.matchLabels",
        "spec.runPolicy.schedulingPolicy.minResources",
    } <= named
    for _, path, shape in EVERY:
        assert 30_000 < len(json.dumps(filled(path, shape, 50_000, TEXTS["texts"]))) < 60_000


@pytest.mark.parametrize(
    ("path", "shape", "text"),
    [
        pytest.param(path, shape, text, id=f"{name} {kind}")
        for name, path, shape in EVERY
        for kind, text in TEXTS.items()
    ][:: sample(37, 3)],
)
def test_a_megabyte_in_one_field_takes_only_so_many_steps(path: Path, shape: Shape, text: Text) -> None:
    for length in LENGTHS:
        assert calls(filled(path, shape, length, text), DEFAULTS, CLUSTER) < MOST_CALLS
