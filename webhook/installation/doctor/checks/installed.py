"""Checks of the Deployment, its pods and Service, the certificates, and the service's rights."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook import PROGRAM
from webhook.client.access_reviews import Right
from webhook.client.objects import KubernetesObject
from webhook.installation.doctor import rights
from webhook.installation.doctor.certificates import FILES, Certificates
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import AGAIN, Facts, arguments
from webhook.installation.doctor.unread import Unread

DEPLOYMENT_MISSING: Final = DiagnosisKind("deployment-missing", Severity.PROBLEM)
REPLICAS_NONE: Final = DiagnosisKind("replicas-none", Severity.PROBLEM)
REPLICAS_FEW: Final = DiagnosisKind("replicas-few", Severity.WARNING)
SERVICE_MISSING: Final = DiagnosisKind("service-missing", Severity.PROBLEM)
SERVICE_EMPTY: Final = DiagnosisKind("service-empty", Severity.PROBLEM)


def replicas(facts: Facts) -> Iterator[Diagnosis]:
    yield from _service(facts)
    if isinstance(facts.deployment, Unread):
        yield not_known("the Deployment", facts.deployment.reason)
        return
    if facts.deployment is None:
        yield DEPLOYMENT_MISSING(f"there is no Deployment {PROGRAM} in {facts.location.namespace}", fix=AGAIN)
        return
    expected = facts.deployment["spec"].get("replicas", 1)
    ready = (facts.deployment.get("status") or {}).get("readyReplicas") or 0
    describe = f"kubectl -n {facts.location.namespace} describe pods -l app.kubernetes.io/name={PROGRAM}"
    if not ready:
        yield REPLICAS_NONE(f"no replica is ready{_why(facts)}: no job can be created or changed", fix=describe)
    elif ready < expected:
        yield REPLICAS_FEW(f"{ready} of {expected} replicas are ready{_why(facts)}", fix=describe)
    elif expected < 2:
        yield REPLICAS_FEW(
            "there is a single replica: no job can be created while it restarts",
            fix=f"kubectl -n {facts.location.namespace} scale deployment {PROGRAM} --replicas=2",
        )
    if isinstance(facts.pods, Unread):
        yield not_known("the pods", facts.pods.reason)
    yield ok(f"{ready} of {expected} replicas ready")


def _service(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.service, Unread):
        yield not_known("the Service", facts.service.reason)
    elif facts.service is None:
        text = f"there is no Service {facts.location.service} in {facts.location.namespace}"
        yield SERVICE_MISSING(text, fix=AGAIN)
    elif isinstance(facts.endpoints, Unread):
        yield not_known("the endpoints of the Service", facts.endpoints.reason)
    elif not facts.endpoints and isinstance(facts.pods, list) and any(_ready(pod) for pod in facts.pods):
        text = "replicas are ready, but the Service does not select them: its selector or port is wrong"
        yield SERVICE_EMPTY(text, fix=AGAIN)


def _ready(pod: KubernetesObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _why(facts: Facts) -> str:
    """Why pods are not ready, in brackets; empty if their status has no reason."""
    pods = [] if isinstance(facts.pods, Unread) else [pod for pod in facts.pods if not _ready(pod)]
    reasons = {
        waiting["reason"]
        for pod in pods
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if (waiting := (status.get("state") or {}).get("waiting")) and waiting.get("reason")
    }
    return f" ({', '.join(sorted(reasons))})" if reasons else ""


CERTIFICATE_BROKEN: Final = DiagnosisKind("certificate-broken", Severity.PROBLEM)
CERTIFICATE_ATTENTION: Final = DiagnosisKind("certificate-attention", Severity.WARNING)
CERTIFICATE_SECRET_MISSING: Final = DiagnosisKind("certificate-secret-missing", Severity.PROBLEM)
CERTIFICATE_UNSEEN: Final = DiagnosisKind("certificate-unseen", Severity.UNKNOWN)


def certificates(facts: Facts) -> Iterator[Diagnosis]:
    """Reports the issues of `certs status`. The time is the API server's, because it verifies the certificates."""
    state = facts.certificates
    yield from _stored(state)
    if isinstance(state.bundles, Unread):
        yield not_known("the caBundles", state.bundles.reason)
    status = state.status(facts.server_time or facts.now)
    log = f"kubectl -n {state.namespace} logs -l app.kubernetes.io/name={PROGRAM} --tail=100"
    for issue in status.issues:
        if state.data is None and state.secret and "Secret" in issue.text:
            continue  # `_stored` has reported this issue
        kind = CERTIFICATE_BROKEN if issue.severity == "error" else CERTIFICATE_ATTENTION
        yield kind(issue.text, fix=f"{issue.advice} ({log})")
    if not state.served:
        yield unseen(state)
        return
    until = min(certificate.not_after for certificate in status.certificates if certificate.role == "served")
    plural = "" if len(state.served) == 1 else "es"
    phase = f"; CA {status.phase}" if status.phase else ""
    yield ok(f"valid until {until:%Y-%m-%d}, trusted, seen at {len(state.served)} address{plural}{phase}")


def unseen(certificates: Certificates) -> Diagnosis:
    why = "; ".join(certificates.unreached) or "the Service has no endpoints"
    stand_in = ", so the mounted Secret is checked instead" if certificates.stored else ""
    return CERTIFICATE_UNSEEN(
        f"the served certificate cannot be seen from here{stand_in} ({why})",
        fix=f"kubectl -n {certificates.namespace} port-forward deployment/{PROGRAM} 8443, and meanwhile run this "
        "command with --address 127.0.0.1:8443",
    )


def _stored(certificates: Certificates) -> Iterator[Diagnosis]:
    if isinstance(certificates.data, Unread):
        yield not_known(f"the Secret {certificates.secret}", certificates.data.reason)
    elif certificates.secret and certificates.data is None:
        again = f"apply the manifests again, which create an empty Secret: {AGAIN}"
        issuer = (
            f"kubectl -n {certificates.namespace} describe certificates.cert-manager.io; on OpenShift check that the "
        )
        issuer += "Service has the annotation service.beta.openshift.io/serving-cert-secret-name"
        text = f"the Secret {certificates.secret} does not exist in {certificates.namespace}: " + (
            "no replica can start" if certificates.source == FILES else "certificates are not renewed"
        )
        yield CERTIFICATE_SECRET_MISSING(text, fix=issuer if certificates.source == FILES else again)


RIGHT_ESSENTIAL: Final = DiagnosisKind("right-essential", Severity.PROBLEM)
RIGHT_MISSING: Final = DiagnosisKind("right-missing", Severity.WARNING)
SECRETS_OPEN: Final = DiagnosisKind("secrets-open", Severity.WARNING)


def service_rights(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.rights, Unread):
        yield not_known("the rights of the service", facts.rights.reason)
        return
    options = arguments(facts.deployment)
    purposes = rights.purposes(facts.location, ca_secret=facts.certificates.ca_secret, options=options)
    yield from missing(purposes, facts.rights, fix=AGAIN)
    if open_ := [right for right in rights.excess(facts.location, options=options) if facts.rights.get(right)]:
        yield SECRETS_OPEN(
            f"the service may {_words(open_)}, but does not need this right",
            fix=f"kubectl get clusterrolebindings,rolebindings -A -o wide | grep {PROGRAM}; "
            "remove the binding that is not in the manifests",
        )
    yield ok(f"all {sum(len(purpose.rights) for purpose in purposes)} rights, and no others on Secrets")


def missing(purposes: Iterable[rights.Purpose], allowed: Mapping[Right, bool], *, fix: str) -> Iterator[Diagnosis]:
    for purpose in purposes:
        if lacking := [right for right in purpose.rights if not allowed.get(right)]:
            kind = RIGHT_ESSENTIAL if purpose.essential else RIGHT_MISSING
            yield kind(f"the service may not {_words(lacking)}: {purpose.without}", fix=fix)


def _words(rights_in_order: list[Right], most: int = 4) -> str:
    """The verbs and their resources, with at most `most` resources for the same verbs."""
    verbs: dict[str, list[str]] = {}
    for right in rights_in_order:
        verbs.setdefault(str(right).partition(" ")[2], []).append(right.verb)
    resources_by_verbs: dict[str, list[str]] = {}
    for resource, names in verbs.items():
        resources_by_verbs.setdefault(", ".join(names), []).append(resource)
    return "; ".join(
        f"{names} {', '.join(resources[:most])}" + (f" and {len(resources) - most} more" if resources[most:] else "")
        for names, resources in resources_by_verbs.items()
    )
