"""Warnings about metadata and quantities that the API server rejects with messages full of regular expressions.

The API server checks metadata and quantities between the mutating and the validating webhooks, so rules never see the
rejected jobs. A mutating webhook's warnings are shown even if the request fails later.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
"""

import re
from collections.abc import Iterator

from webhook.admission.limits import MAX_SHOWN_PATH_CHARACTERS, MAX_SHOWN_VALUE_CHARACTERS
from webhook.admission.messages import Finding
from webhook.api import names, quantity, quantity_fields
from webhook.api.mpijob import MPIJob
from webhook.predict.pod_template.fault import Faults
from webhook.predict.pod_template.labels import check_annotations, check_labels
from webhook.rules import Violation, shortened

RULE = "upstream-contract"
NAME = "Use lower case letters, digits and -, a letter first."
# The CRD's pattern of quantities (`x-kubernetes-int-or-string`). Rules report other faults of a quantity.
_PATTERN = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))?"
)


def findings(job: MPIJob) -> list[Finding]:
    """The findings, short enough for warnings. The command `check` reports more details."""
    return [Finding(RULE, violation) for violation in (*_names(job), *_metadata(job), *_quantities(job))]


def _names(job: MPIJob) -> Iterator[Violation]:
    field, name = "name", job.metadata.name
    base = name
    if names.is_generated(name, prefix := job.metadata.generate_name):
        field, name, base = "generateName", prefix, f"{prefix[: names.GENERATED_BASE_MAX_LENGTH]}x"
    if base and (problem := names.dns_1123_subdomain_problem(base)):
        shown = shortened(name, MAX_SHOWN_VALUE_CHARACTERS)
        yield Violation(f"metadata.{field}", f'"{shown}" {problem.partition(";")[0]}', NAME)


def _metadata(job: MPIJob) -> Iterator[Violation]:
    faults = Faults()
    check_labels(job.labels, "metadata.labels", faults)
    check_annotations(job.annotations, "metadata.annotations", faults)
    for fault in faults:
        yield Violation(shortened(fault.path, MAX_SHOWN_PATH_CHARACTERS), fault.message.partition(";")[0], fault.fix)


def _quantities(job: MPIJob) -> Iterator[Violation]:
    for _, path, replica in job.replicas:
        for where, amounts in quantity_fields.of_template(replica.template):
            for name, value in amounts.items():
                if isinstance(value, str) and not _PATTERN.fullmatch(value):
                    try:
                        quantity.parse(value)
                    except quantity.QuantityError as error:
                        field = f"{path}.template{quantity_fields.place(where, name)}"
                        yield Violation(field, str(error), error.fix(name))
