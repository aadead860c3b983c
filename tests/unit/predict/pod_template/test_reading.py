"""A job is decoded once. Rules and the prediction of the API server's validation use the same result."""

import json

import msgspec
from hypothesis import given

from tests.support.any_job import Json, any_job
from tests.support.jobs import GOOD, changed
from tests.support.strategies import PROPERTY
from webhook.api import mpijob
from webhook.predict.pod_template import decode_job, model


def test_templates_of_a_valid_job_have_the_types_of_the_model() -> None:
    job = decode_job(json.dumps(GOOD).encode())
    assert [type(replica.template) for _, _, replica in job.replicas] == [model.Template] * 2


def test_job_with_a_fault_is_decoded_as_by_the_module_mpijob() -> None:
    job = changed({"Worker.template.spec.containers.0.imagePullPolicy": "always"})
    assert decode_job(json.dumps(job).encode()) == mpijob.decode(json.dumps(job).encode())


@given(any_job())
@PROPERTY
def test_both_decoders_read_the_same_values(job: Json) -> None:
    document = json.dumps(job).encode()
    wide, narrow = mpijob.decode(document), decode_job(document)
    assert msgspec.json.decode(msgspec.json.encode(narrow.spec), type=mpijob.MPIJobSpec) == wide.spec
