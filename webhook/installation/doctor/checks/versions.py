"""Kubernetes, the MPIJob API, the operators that run the jobs."""

import re
from collections.abc import Iterator
from typing import Final

from webhook.api import mpijob
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts
from webhook.installation.doctor.unread import Unread

KUBERNETES_OLD: Final = DiagnosisKind("kubernetes-old", Severity.WARNING)
MPIJOBS_MISSING: Final = DiagnosisKind("mpijobs-missing", Severity.PROBLEM)
OPERATOR_MISSING: Final = DiagnosisKind("operator-missing", Severity.WARNING)
OPERATOR_OLD: Final = DiagnosisKind("operator-old", Severity.WARNING)
OPERATORS_SEVERAL: Final = DiagnosisKind("operators-several", Severity.WARNING)

OLDEST: Final = (1, 27)
# Older ones leave a job that Kueue suspended with the node selector it had (mpi-operator#670).
OPERATOR_FOR_KUEUE: Final = (0, 8, 0)
OPERATORS: Final = ("mpi-operator", "training-operator")


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say whether this version is made for what the cluster runs."""
    version = "unknown" if isinstance(facts.version, Unread) else str(facts.version.get("gitVersion"))
    if facts.kubernetes is not None and facts.kubernetes < OLDEST:
        yield KUBERNETES_OLD(
            f"Kubernetes {version} is older than all that this is made for",
            fix=f"update the cluster to Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer",
        )
    yield from _mpijobs(facts)
    if isinstance(facts.deployments, Unread):
        yield not_known("which operators run MPIJobs", facts.deployments.reason)
        return
    yield from _operators(facts)
    programs = [f"{program} {_tag(image)}" for program in OPERATORS for _, image in facts.images(program)]
    kueue = next((_tag(image) for _, image in facts.images("kueue")), "")
    yield ok(", ".join([f"Kubernetes {version}", *programs, f"Kueue {kueue}" if kueue else "no Kueue"]))


def _mpijobs(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.crd, Unread):
        yield not_known("whether the cluster knows MPIJobs", facts.crd.reason)
        return
    versions = facts.crd["spec"]["versions"] if facts.crd else ()
    if not any(f"{mpijob.GROUP}/{each['name']}" == mpijob.API_VERSION and each["served"] for each in versions):
        served = ", ".join(each["name"] for each in versions if each["served"])
        yield MPIJOBS_MISSING(
            f"the cluster serves no MPIJobs of {mpijob.API_VERSION}" + (f", only {served}" if served else ""),
            fix="install mpi-operator with its CRD; training-operator v1 brings an older one of the same name",
        )


def _operators(facts: Facts) -> Iterator[Diagnosis]:
    found = [(program, namespace, image) for program in OPERATORS for namespace, image in facts.images(program)]
    if not any(program == "mpi-operator" for program, _, _ in found):
        yield OPERATOR_MISSING(
            "no Deployment runs an image mpi-operator: jobs are stored, and nothing starts them",
            fix="kubectl get deployments -A | grep operator; fine if it runs elsewhere, or under another image's name",
        )
    if len(found) > 1:
        names = ", ".join(f"{program} in {namespace}" for program, namespace, _ in found)
        fix = "keep one; start training-operator with --enable-scheme for each of its other kinds, without mpijob"
        yield OPERATORS_SEVERAL(f"several operators take MPIJobs, and make two launchers of each: {names}", fix=fix)
    for program, namespace, image in found:
        number = _number(image)
        if program == "mpi-operator" and number and number < OPERATOR_FOR_KUEUE and any(facts.images("kueue")):
            yield OPERATOR_OLD(
                f"mpi-operator {_tag(image)} in {namespace} starts what Kueue has admitted on the wrong nodes",
                fix="update mpi-operator to 0.8.0 or newer",
            )


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2] or "(unknown version)"


def _number(image: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", _tag(image))
    return tuple(map(int, found.groups())) if found else ()
