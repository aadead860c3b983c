"""The checks of `doctor`.

A check turns Facts into diagnoses, and does not access the cluster.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from webhook.installation.doctor import diagnosis
from webhook.installation.doctor.checks import cluster, hooks, installed, policies
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity
from webhook.installation.doctor.facts import Facts

CHECKS: Final[Mapping[str, Callable[[Facts], Iterator[Diagnosis]]]] = {
    "versions": cluster.versions,
    "replicas": installed.replicas,
    "webhooks": hooks.configurations,
    "order": hooks.order,
    "certificates": installed.certificates,
    "rights": installed.service_rights,
    "policies": policies.policies,
    "Kueue": cluster.kueue,
    "probe": hooks.probe,
}
"""The checks by name, in the order of the report."""


def run(facts: Facts) -> Iterator[tuple[str, Diagnosis]]:
    """(name of the check, diagnosis). If a check finds a problem, its diagnoses with severity `OK` are left out."""
    for name, check in CHECKS.items():
        diagnoses = list(check(facts))
        problems = [diagnosis for diagnosis in diagnoses if diagnosis.severity is not Severity.OK]
        yield from ((name, diagnosis) for diagnosis in problems or diagnoses)


def kinds() -> tuple[DiagnosisKind, ...]:
    modules = (diagnosis, cluster, installed, hooks, policies)
    declared = [value for module in modules for value in vars(module).values()]
    return tuple(dict.fromkeys(value for value in declared if isinstance(value, DiagnosisKind)))
