"""What of a training job has no counterpart, and what became of the rest of it that needs no work."""

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from webhook.converters.report import Report
from webhook.converters.sagemaker import distribution

# What was as it is here, by the end of its path.
_AS_HERE: Final[tuple[tuple[str, Any], ...]] = (
    ("InputMode", "File"), ("CompressionType", "None"), ("CompressionType", "NONE"), ("RecordWrapperType", "None"),
    ("S3DataType", "S3Prefix"), ("S3DataDistributionType", "FullyReplicated"), ("VolumeSizeInGB", 0),
)  # fmt: skip
_SEPARATORS: Final = (".", "[")


@cache
def _no_counterpart() -> dict[str, str]:
    """What is told of the fields that no MPIJob has, and of those that DescribeTrainingJob adds."""
    text = (get_data(__package__, "no_counterpart.csv") or b"").decode()
    return dict(row for row in csv.reader(text.splitlines()[1:]))


def settle(document: Mapping[str, Any], report: Report) -> None:
    """Tell of each field of the request that nothing has been told of yet."""
    for path, value in _leaves(document, ""):
        told = {note.field for note in report.notes}
        if any(_covers(field, path) for field in told):
            continue
        if value is False or any(path.endswith(end) and value == written for end, written in _AS_HERE):
            report.mapped(path, "is as it is here")
            continue
        if known := next((field for field in _no_counterpart() if _covers(field, path)), None):
            report.lost(known, _no_counterpart()[known])
        elif path.startswith("HyperParameters["):
            report.lost(path, "is for SageMaker's toolkit, which does not run")
        else:
            report.lost(path, "has no counterpart")


def _covers(field: str, path: str) -> bool:
    """Whether what was told of `field` is about `path` too. HyperParameters as a whole are those of the user."""
    if field == "HyperParameters" and path.startswith("HyperParameters["):
        return bool(distribution.of_user({path.removeprefix("HyperParameters[").removesuffix("]"): ""}))
    return path == field or any(path.startswith(field + separator) for separator in _SEPARATORS)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each value that is set, with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            by_user = path in {"HyperParameters", "Environment"}
            yield from _leaves(item, f"{path}[{key}]" if by_user else f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif value is not None:
        yield path, value
