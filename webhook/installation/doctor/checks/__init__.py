"""The checks of `doctor`, one file each.

A check is a function `check` from Facts to diagnoses, and the kinds of diagnoses that it makes. It reads nothing from
the cluster itself: what it needs is gathered into Facts before, so every check can be tested without a cluster.
"""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Final

from webhook.installation.doctor import diagnosis
from webhook.installation.doctor.checks import (
    asked,
    clock,
    configurations,
    kueue,
    order,
    permissions,
    plugins,
    policies,
    probe,
    replicas,
    secret_hook,
    trust,
    versions,
)
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity
from webhook.installation.doctor.facts import Facts

CHECKS: Final[Mapping[str, ModuleType]] = {
    "versions": versions,
    "clock": clock,
    "replicas": replicas,
    "webhooks": configurations,
    "order": order,
    "SSH key hook": secret_hook,
    "certificates": trust,
    "rights": permissions,
    "plug-ins": plugins,
    "policies": policies,
    "annotations": asked,
    "Kueue": kueue,
    "probe": probe,
}
"""By their names in the report, in its order."""


# What a server of `serve --register` does without.
INSTALLED: Final = frozenset({"replicas", "certificates", "rights"})


def run(facts: Facts) -> Iterator[tuple[str, Diagnosis]]:
    """(name of the check, diagnosis) of all checks. That all is fine is said only where nothing wrong was found."""
    for name, module in CHECKS.items():
        if facts.on_trial and name in INSTALLED:
            continue
        check: Callable[[Facts], Iterator[Diagnosis]] = module.check
        found = list(check(facts))
        faults = [each for each in found if each.severity is not Severity.OK]
        yield from ((name, each) for each in faults or found)


def kinds() -> tuple[DiagnosisKind, ...]:
    """Every kind of diagnosis there is."""
    declared = [value for module in (diagnosis, *CHECKS.values()) for value in vars(module).values()]
    return tuple(dict.fromkeys(value for value in declared if isinstance(value, DiagnosisKind)))
