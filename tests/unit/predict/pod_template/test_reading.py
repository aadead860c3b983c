"""One decode for the rules and for the API server's validation."""

import json

import msgspec
from hypothesis import given

from tests.support.any_job import Json, any_job
from tests.support.jobs import GOOD, changed
from tests.support.strategies import PROPERTY
from webhook.api import mpijob
from webhook.predict.pod_template import decode_job, model


def test_the_templates_of_a_good_job_are_of_the_narrow_types() -> None:
    job = decode_job(json.dumps(GOOD).encode())
    assert [type(replica.template) for _, _, replica in job.replicas()] == [model.Template] * 2


def test_a_job_with_a_fault_is_read_as_far_as_rules_can() -> None:
    job = changed({"Worker.template.spec.containers.0.imagePullPolicy": "always"})
    assert decode_job(json.dumps(job).encode()) == mpijob.decode(json.dumps(job).encode())


@given(any_job())
@PROPERTY
def test_rules_read_the_same_in_both(job: Json) -> None:
    document = json.dumps(job).encode()
    wide, narrow = mpijob.decode(document), decode_job(document)
    assert msgspec.json.decode(msgspec.json.encode(narrow.spec), type=mpijob.MPIJobSpec) == wide.spec
