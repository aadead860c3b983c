"""Kueue, where there is one: whether it manages MPIJobs."""

from collections.abc import Iterator
from typing import Final

import msgspec

from webhook.cluster.resources.kueue_config import KUEUE_CONFIG, NAME
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import KUEUE_HOOK, Facts, hooks
from webhook.installation.doctor.unread import Unread

KUEUE_WITHOUT_MPIJOBS: Final = DiagnosisKind("kueue-without-mpijobs", Severity.WARNING)
KUEUE_CONFIG_UNKNOWN: Final = DiagnosisKind("kueue-config-unknown", Severity.WARNING)
FRAMEWORK: Final = "kubeflow.org/mpijob"


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Read Kueue's own configuration: its webhooks exist whether it manages MPIJobs or not."""
    if not _installed(facts):
        if isinstance(facts.mutating, Unread):
            yield not_known("whether Kueue is there", facts.mutating.reason)
        yield ok("not installed")
        return
    if isinstance(facts.kueue_config, Unread):
        yield not_known("Kueue's configuration", facts.kueue_config.reason)
        return
    place = f"ConfigMap {NAME} in {facts.location.kueue_namespace}"
    if facts.kueue_config is None:
        yield KUEUE_CONFIG_UNKNOWN(
            f"Kueue is there, but not its {place}: whether it manages a job is unknown, and queues are not injected",
            fix="kubectl get configmaps -A | grep manager-config, then --kueue-namespace here and on the Deployment",
        )
        return
    try:
        config = KUEUE_CONFIG.project(msgspec.json.encode(facts.kueue_config))
    except (ValueError, TypeError, LookupError) as error:
        config, fault = None, str(error)
    else:
        fault = "there is none under controller_manager_config.yaml"
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
    return any(facts.images("kueue")) or any(hook["name"] == KUEUE_HOOK for each in mutating for hook in hooks(each))
