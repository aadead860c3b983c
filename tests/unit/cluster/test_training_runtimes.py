"""What is kept of Kubeflow Trainer's runtimes."""

import json

import msgspec
import pytest

from tests.support.trainer import record, runtime
from webhook.api import trainer
from webhook.cluster.resources import watched_resources
from webhook.cluster.training_runtimes import CLUSTER_TRAINING_RUNTIMES, OF_TRAINER


def test_the_whole_spec_of_a_runtime_for_mpi():
    manifest = runtime(trainer.RUNTIME)

    found = record(manifest)

    assert (found.namespace, found.name) == ("team", "deepspeed")
    assert json.loads(found.spec) == manifest["spec"]


@pytest.mark.parametrize("spec", [{}, {"mlPolicy": None}, {"mlPolicy": {"torch": {}}}, {"mlPolicy": {"mpi": None}}])
def test_nothing_of_a_runtime_for_something_else(spec):
    assert record({**runtime(), "spec": spec}).spec == b""


def test_one_that_cannot_be_read_is_no_record():
    with pytest.raises(msgspec.ValidationError):
        CLUSTER_TRAINING_RUNTIMES.project(b'{"metadata": {"name": "x"}, "spec": {"mlPolicy": 7}}')


def test_they_are_not_watched_by_every_service():
    assert not {*OF_TRAINER} & {*watched_resources()}
