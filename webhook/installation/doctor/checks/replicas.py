"""The Deployment, its pods, and the Service in front of them."""

from collections.abc import Iterator
from typing import Final

from webhook import PROGRAM
from webhook.client.objects import KubernetesObject
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, Unread, not_known, ok
from webhook.installation.doctor.facts import Facts

DEPLOYMENT_MISSING: Final = DiagnosisKind("deployment-missing", Severity.PROBLEM)
REPLICAS_NONE: Final = DiagnosisKind("replicas-none", Severity.PROBLEM)
REPLICAS_FEW: Final = DiagnosisKind("replicas-few", Severity.WARNING)
IMAGES_DIFFER: Final = DiagnosisKind("images-differ", Severity.WARNING)
SERVICE_MISSING: Final = DiagnosisKind("service-missing", Severity.PROBLEM)
SERVICE_EMPTY: Final = DiagnosisKind("service-empty", Severity.PROBLEM)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say whether enough replicas are ready, run the same image, and are found by the Service."""
    yield from _service(facts)
    if isinstance(facts.deployment, Unread):
        yield not_known("the Deployment", facts.deployment.reason)
        return
    if facts.deployment is None:
        yield DEPLOYMENT_MISSING(f"there is no Deployment {PROGRAM} in {facts.location.namespace}", fix=facts.again)
        return
    wanted = facts.deployment["spec"].get("replicas", 1)
    ready = (facts.deployment.get("status") or {}).get("readyReplicas") or 0
    describe = f"kubectl -n {facts.location.namespace} describe pods -l app.kubernetes.io/name={PROGRAM}"
    if not ready:
        yield REPLICAS_NONE(f"no replica is ready{_why(facts)}: no job can be created or changed", fix=describe)
    elif ready < wanted:
        yield REPLICAS_FEW(f"{ready} of {wanted} replicas are ready{_why(facts)}", fix=describe)
    elif wanted < 2:
        yield REPLICAS_FEW(
            "there is a single replica: no job can be created while it restarts",
            fix=f"kubectl -n {facts.location.namespace} scale deployment {PROGRAM} --replicas=2",
        )
    yield from _images(facts)
    yield ok(f"{ready} of {wanted} replicas ready, all of one image")


def _service(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.service, Unread):
        yield not_known("the Service", facts.service.reason)
    elif facts.service is None:
        text = f"there is no Service {facts.location.service} in {facts.location.namespace}"
        yield SERVICE_MISSING(text, fix=facts.again)
    elif isinstance(facts.endpoints, Unread):
        yield not_known("the endpoints of the Service", facts.endpoints.reason)
    elif not facts.endpoints and isinstance(facts.pods, list) and any(_ready(pod) for pod in facts.pods):
        text = "replicas are ready, but the Service finds none: its selector or port is not theirs"
        yield SERVICE_EMPTY(text, fix=facts.again)


def _images(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.pods, Unread):
        yield not_known("the pods", facts.pods.reason)
        return
    images = {container["image"] for pod in facts.pods for container in pod["spec"]["containers"][:1]}
    if len(images) > 1:
        yield IMAGES_DIFFER(
            f"the replicas are of different images: {', '.join(sorted(images))}",
            fix=f"kubectl -n {facts.location.namespace} rollout status deployment/{PROGRAM}",
        )


def _ready(pod: KubernetesObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _why(facts: Facts) -> str:
    """Why pods are not ready, where their status says so."""
    pods = [] if isinstance(facts.pods, Unread) else [pod for pod in facts.pods if not _ready(pod)]
    reasons = {
        waiting["reason"]
        for pod in pods
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if (waiting := (status.get("state") or {}).get("waiting")) and waiting.get("reason")
    }
    return f" ({', '.join(sorted(reasons))})" if reasons else ""
