"""The checks of `doctor`.

A check is a function from Facts to diagnoses. It does not read the cluster: `gather` collects the Facts before, so
every check can be tested without a cluster. Its module defines the kinds of diagnoses that it makes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from webhook.installation.doctor import diagnosis
from webhook.installation.doctor.checks import cluster, hooks, installed, policies
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity
from webhook.installation.doctor.facts import Facts

CHECKS: Final[Mapping[str, Callable[[Facts], Iterator[Diagnosis]]]] = {
    "versions": cluster.versions,
    "clock": cluster.clock,
    "replicas": installed.replicas,
    "webhooks": hooks.configurations,
    "order": hooks.order,
    "SSH key hook": hooks.secret_hook,
    "certificates": installed.certificates,
    "rights": installed.service_rights,
    "plug-ins": policies.plugins,
    "policies": policies.policies,
    "annotations": policies.annotations,
    "Kueue": cluster.kueue,
    "probe": hooks.probe,
}
"""By their names in the report, in its order."""


# Checks of parts that a server of `serve --register` does not have.
INSTALLED: Final = frozenset({"replicas", "certificates", "rights"})


def run(facts: Facts) -> Iterator[tuple[str, Diagnosis]]:
    """(name of the check, diagnosis) of all checks. "OK" is reported only for a check without problems."""
    for name, check in CHECKS.items():
        if facts.on_trial and name in INSTALLED:
            continue
        found = list(check(facts))
        faults = [each for each in found if each.severity is not Severity.OK]
        yield from ((name, each) for each in faults or found)


def kinds() -> tuple[DiagnosisKind, ...]:
    modules = (diagnosis, cluster, installed, hooks, policies)
    declared = [value for module in modules for value in vars(module).values()]
    return tuple(dict.fromkeys(value for value in declared if isinstance(value, DiagnosisKind)))
