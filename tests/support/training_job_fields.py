"""Every field of a SageMaker training job, and a job that sets all fields.

The fields are from the API model in botocore 1.44.5 (`sagemaker/2017-07-24/service-2.json`): first the fields of
CreateTrainingJobRequest, then the additional fields of DescribeTrainingJobResponse.
"""

import re
from pathlib import Path
from typing import Any, Final

from tests.support.training_jobs import mpi

FIELDS: Final = tuple(
    tuple(line.split()) for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)
_VALUES: Final[dict[str, Any]] = {
    "string": "text",
    "integer": 2,
    "long": 2,
    "float": 0.5,
    "boolean": True,
    "timestamp": "2025-11-03T10:15:00+01:00",
}
_SPECIAL: Final[dict[str, Any]] = {
    "ResourceConfig.InstanceType": "ml.p4d.24xlarge",
    "ResourceConfig.InstanceGroups[0].InstanceType": "ml.p4d.24xlarge",
    "InputDataConfig[0].DataSource.S3DataSource.S3Uri": "s3://example-datasets/train",
}
_STEP: Final = re.compile(r"[^.\[\]]+")


def full() -> dict[str, Any]:
    """A job with all fields. No real job has all fields, because some fields exclude each other."""
    job: dict[str, Any] = {}
    for path, kind in FIELDS:
        _set(job, path, _SPECIAL.get(path, _VALUES[kind]))
    job["HyperParameters"] |= mpi(8, "-x A=1")
    return job


def _set(job: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = _STEP.findall(path)
    target: Any = job
    for step, following in zip(steps, [*steps, last][1:], strict=True):
        if step == "0":
            if not target:
                target.append([] if following == "0" else {})
            target = target[0]
        else:
            target = target.setdefault(step, [] if following == "0" else {})
    if last == "0":
        target.append(value)
    else:
        target[last] = value
