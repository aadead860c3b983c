"""Checks of the cluster: Kubernetes, the CRD of MPIJobs, the operators that run the jobs and Kueue."""

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

import msgspec

from webhook import PROGRAM
from webhook.api import mpijob
from webhook.client.objects import KubernetesObject
from webhook.cluster.resources.kueue_config import KUEUE_CONFIG, NAME
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import AGAIN, KUEUE_HOOK, Facts, Policies, arguments, flag, hooks
from webhook.installation.doctor.unread import Unread

KUBERNETES_OLD: Final = DiagnosisKind("kubernetes-old", Severity.WARNING)
MPIJOBS_MISSING: Final = DiagnosisKind("mpijobs-missing", Severity.PROBLEM)
CONVERSION_OFF: Final = DiagnosisKind("conversion-off", Severity.PROBLEM)
CONVERSION_MISSING: Final = DiagnosisKind("conversion-missing", Severity.WARNING)
CONVERSION_UNUSED: Final = DiagnosisKind("conversion-unused", Severity.WARNING)
OPERATOR_MISSING: Final = DiagnosisKind("operator-missing", Severity.WARNING)
OPERATOR_OLD: Final = DiagnosisKind("operator-old", Severity.WARNING)
OPERATORS_SEVERAL: Final = DiagnosisKind("operators-several", Severity.WARNING)
OPERATOR_GANG: Final = DiagnosisKind("operator-gang", Severity.WARNING)

OLDEST: Final = (1, 28)
# The first mpi-operator that works with Kueue. Older operators keep the node selector of a job that Kueue has suspended
# (mpi-operator#670).
OPERATOR_FOR_KUEUE: Final = (0, 8, 0)
# An option of the operator. A job does not show whether the operator has it.
GANG: Final = "gang-scheduling"
OPERATORS: Final = ("mpi-operator", "training-operator")


def versions(facts: Facts) -> Iterator[Diagnosis]:
    version = "unknown" if isinstance(facts.version, Unread) else str(facts.version.get("gitVersion"))
    if facts.kubernetes is not None and facts.kubernetes < OLDEST:
        yield KUBERNETES_OLD(
            f"Kubernetes {version} is too old for this service",
            fix=f"update the cluster to Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer",
        )
    yield from _mpijobs(facts)
    if isinstance(facts.deployments, Unread):
        yield not_known("which operators run MPIJobs", facts.deployments.reason)
        return
    yield from _operators(facts)
    yield from _gang_scheduling(facts)
    programs = [f"{program} {_tag(container)}" for program in OPERATORS for _, container in facts.programs(program)]
    kueue = next((_tag(container) for _, container in facts.programs("kueue")), "")
    yield ok(", ".join([f"Kubernetes {version}", *programs, f"Kueue {kueue}" if kueue else "no Kueue"]))


def _mpijobs(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.crd, Unread):
        yield not_known("whether the cluster has MPIJobs", facts.crd.reason)
        return
    versions = facts.crd["spec"]["versions"] if facts.crd else ()
    served = [version["name"] for version in versions if version["served"]]
    yield from _conversion(facts, served)
    if mpijob.API_VERSION not in [f"{mpijob.GROUP}/{name}" for name in served]:
        yield MPIJOBS_MISSING(
            f"the cluster serves no MPIJobs of {mpijob.API_VERSION}"
            + (f", only {', '.join(served)}" if served else ""),
            fix="install mpi-operator with its CRD; training-operator v1 installs an older CRD of the same name",
        )


def _conversion(facts: Facts, served: list[str]) -> Iterator[Diagnosis]:
    """Checks the CRD's conversion. A CRD with several served versions needs a conversion webhook, and vice versa."""
    conversion = (facts.crd["spec"].get("conversion") or {}) if isinstance(facts.crd, Mapping) else {}
    called = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service") or {}
    ours = (called.get("namespace"), called.get("name")) == (facts.location.namespace, facts.location.service)
    on = "--conversion" in arguments(facts.deployment)
    older = [name for name in served if f"{mpijob.GROUP}/{name}" in mpijob.OLDER_VERSIONS]
    if ours and not on and isinstance(facts.deployment, Mapping):
        yield CONVERSION_OFF(
            f"the CRD of MPIJobs calls this service to convert {', '.join(older)}, but --conversion is off",
            fix=f"add manifests/components/conversion to your overlay, then {AGAIN}",
        )
    elif older and len(older) < len(served) and conversion.get("strategy") != "Webhook":
        yield CONVERSION_MISSING(
            f"{', '.join(older)} of MPIJobs is served together with other versions, without a conversion webhook: "
            "fields with other names are ignored, and workers wait instead of running sshd",
            fix=f"remove it from the CRD, or let {PROGRAM} convert it: docs/older-versions.md",
        )
    elif on and not ours:
        yield CONVERSION_UNUSED(
            "--conversion is set, but the CRD of MPIJobs does not call this service for conversion",
            fix="remove manifests/components/conversion from your overlay, or patch the CRD: docs/older-versions.md",
        )


def _operators(facts: Facts) -> Iterator[Diagnosis]:
    operators = [
        (program, namespace, container)
        for program in OPERATORS
        for namespace, container in facts.programs(program)
        if _takes_mpijobs(container)
    ]
    if not any(program == "mpi-operator" for program, _, _ in operators):
        yield OPERATOR_MISSING(
            "no Deployment has an image named mpi-operator: jobs are stored, but no operator starts them",
            fix="kubectl get deployments -A | grep operator; fine if it runs elsewhere, or under another image's name",
        )
    namespaces = [flag(container, "namespace") for _, _, container in operators]
    if any(not first or not second or first == second for first, second in combinations(namespaces, 2)):
        names = ", ".join(f"{program} in {namespace}" for program, namespace, _ in operators)
        fix = "keep one operator; start training-operator with --enable-scheme for each kind except mpijob"
        yield OPERATORS_SEVERAL(f"several operators reconcile MPIJobs, and each creates a launcher: {names}", fix=fix)
    for program, namespace, container in operators:
        number = _number(container)
        if program == "mpi-operator" and number and number < OPERATOR_FOR_KUEUE and any(facts.programs("kueue")):
            yield OPERATOR_OLD(
                f"mpi-operator {_tag(container)} in {namespace} starts jobs of Kueue on the wrong nodes",
                fix="update mpi-operator to 0.8.0 or newer",
            )


def _takes_mpijobs(container: KubernetesObject) -> bool:
    """Whether the operator reconciles MPIJobs. training-operator can be limited to other kinds."""
    words = " ".join(str(word) for key in ("command", "args") for word in container.get(key) or ())
    schemes = re.findall(r"--?enable-scheme[= ](\S+)", words)
    return not schemes or any("mpi" in scheme.lower() for scheme in schemes)


def _gang_scheduling(facts: Facts) -> Iterator[Diagnosis]:
    if not isinstance(facts.policies, Policies):
        return
    for namespace, container in facts.programs("mpi-operator"):
        actual = flag(container, GANG)
        runs = f"runs with --{GANG}={actual}" if actual else f"runs without --{GANG}"
        if actual.startswith("$"):
            continue
        for name, assumed in facts.policies.gangs.items():
            if assumed != actual:
                yield OPERATOR_GANG(
                    f'policy "{name}" assumes --{GANG}={assumed}, but mpi-operator in {namespace} {runs}: the '
                    "policy's checks of gangs and their queues are wrong",
                    fix="set this option of the operator, or remove `gang` and `volcano-queue` from the policy",
                )
        if actual and not facts.policies.gangs:
            yield OPERATOR_GANG(
                f"mpi-operator in {namespace} {runs}, and no policy says so: jobs whose gang never starts are admitted",
                fix="declare it in a policy: manifests/policies/volcano.yaml, or `rules: {gang: {scheduler: NAME}}`",
            )


def _tag(container: KubernetesObject) -> str:
    tag: str = container["image"].partition("@")[0].rpartition("/")[2].partition(":")[2]
    return tag or "(unknown version)"


def _number(container: KubernetesObject) -> tuple[int, ...]:
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", _tag(container))
    return tuple(map(int, match.groups())) if match else ()


KUEUE_WITHOUT_MPIJOBS: Final = DiagnosisKind("kueue-without-mpijobs", Severity.WARNING)
KUEUE_CONFIG_UNKNOWN: Final = DiagnosisKind("kueue-config-unknown", Severity.WARNING)
FRAMEWORK: Final = "kubeflow.org/mpijob"


def kueue(facts: Facts) -> Iterator[Diagnosis]:
    """Checks whether Kueue manages MPIJobs. Kueue's webhooks exist even if it does not manage them."""
    if not _installed(facts):
        if isinstance(facts.mutating, Unread):
            yield not_known("whether Kueue is installed", facts.mutating.reason)
        yield ok("not installed")
        return
    if isinstance(facts.kueue_config, Unread):
        yield not_known("Kueue's configuration", facts.kueue_config.reason)
        return
    place = f"ConfigMap {NAME} in {facts.location.kueue_namespace}"
    if facts.kueue_config is None:
        yield KUEUE_CONFIG_UNKNOWN(
            f"Kueue is installed, but not its {place}: whether it manages a job is unknown, queues are not injected",
            fix="kubectl get configmaps -A | grep manager-config, then --kueue-namespace here and on the Deployment",
        )
        return
    try:
        config = KUEUE_CONFIG.project(msgspec.json.encode(facts.kueue_config))
    except (ValueError, TypeError, LookupError) as error:
        config, fault = None, str(error)
    else:
        fault = "the key controller_manager_config.yaml is missing"
    if config is None:
        fix = f"kubectl -n {facts.location.kueue_namespace} get configmap {NAME} -o yaml"
        yield KUEUE_CONFIG_UNKNOWN(f"the configuration in {place} cannot be read: {fault}", fix=fix)
    elif FRAMEWORK not in config.frameworks:
        yield KUEUE_WITHOUT_MPIJOBS(
            "Kueue does not manage MPIJobs: a job with a queue starts at once, or its pods are queued one by one",
            fix=f"add {FRAMEWORK} to integrations.frameworks in {place}, and restart Kueue",
        )
    else:
        yield ok("manages MPIJobs")


def _installed(facts: Facts) -> bool:
    mutating = () if isinstance(facts.mutating, Unread) else facts.mutating
    names = (hook["name"] for configuration in mutating for hook in hooks(configuration))
    return any(facts.programs("kueue")) or KUEUE_HOOK in names
