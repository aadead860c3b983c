"""The facts that `mpijob-webhook doctor` reads from a correct installation, and functions that change these facts."""

import base64
import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from certs.authority import Authority
from certs.pem import load_certificates
from certs.store import Bundle
from tests.support.jobs import changed
from tests.support.paths import MANIFESTS
from tools import manifests
from webhook.api import yaml
from webhook.client.access_reviews import Right
from webhook.installation import registration
from webhook.installation.doctor import rights
from webhook.installation.doctor.certificates import FILES, SELF_MANAGED, Certificates
from webhook.installation.doctor.facts import Facts, Location, Policies
from webhook.installation.doctor.unread import Unread

NOW = datetime.now(UTC).replace(microsecond=0)
HOST = "mpijob-webhook.mpijob-webhook.svc"
CA = Authority("mpijob-webhook", lifetime=timedelta(days=365))
LEAF = CA.issue([HOST], lifetime=timedelta(days=14))
MUTATING, VALIDATING = manifests.webhooks()
UNREAD = Unread("no permission")


def manifest(path: str, kind: str) -> Any:
    return next(document for document in yaml.load_all((MANIFESTS / path).read_text()) if document["kind"] == kind)


def chain(pem: bytes) -> Any:
    return load_certificates(pem)


def stored(configuration: Any) -> Any:
    """The object as the API server returns it."""
    returned = deepcopy(configuration)
    for hook in returned["webhooks"]:
        for field in ("namespaceSelector", "objectSelector"):
            hook.setdefault(field, {})
        hook["clientConfig"]["caBundle"] = base64.b64encode(CA.certificate_pem).decode()
    return returned


def bundles(pem: bytes) -> tuple[Bundle, ...]:
    return tuple(Bundle(f"{plural}/{registration.NAME}", (pem, pem), "1") for plural in registration.RESOURCES.values())


def deployment(name: str, image: str, *, replicas: int = 2, ready: int = 2, **spec: Any) -> Any:
    return {
        "metadata": {"name": name, "namespace": name},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}], **spec}}},
        "status": {"readyReplicas": ready},
    }


def pod(ready: bool = True, **status: Any) -> Any:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"status": {"conditions": conditions, **status}}


def crd(*versions: str) -> Any:
    return {"spec": {"versions": [{"name": name, "served": True} for name in versions]}}


def converted_crd() -> Any:
    """The CRD of MPIJobs with older versions and conversion by this service."""
    (*_, patch) = yaml.load_all((MANIFESTS / "older-versions" / "versions.yaml").read_text())[0]
    return {"spec": {**crd("v2beta1", "v1")["spec"], "conversion": patch["value"]}}


CONTAINER = "spec.template.spec.containers.0"
SERVICE = deployment("mpijob-webhook", "mpijob-webhook:0.1.0")
OPERATOR = deployment("mpi-operator", "registry.example.com/mpioperator/mpi-operator:0.8.0")
KUEUE = deployment("kueue-system", "registry.example.com/kueue/kueue:v0.14.0")
KUEUE_WEBHOOK: dict[str, Any] = {
    "metadata": {"name": "kueue-mutating-webhook-configuration"},
    "webhooks": [{"name": "mmpijob.kb.io", "reinvocationPolicy": "Never"}],
}
LOCATION = Location()
NEEDED = rights.purposes(LOCATION, ca_secret="mpijob-webhook-ca", options=())
HAS = dict.fromkeys((right for purpose in NEEDED for right in purpose.rights), True)
HEALTHY = Facts(
    location=LOCATION,
    now=NOW,
    server_time=NOW,
    version={"gitVersion": "v1.35.4"},
    mutating=[stored(MUTATING)],
    validating=[stored(VALIDATING)],
    service=manifest("base/service.yaml", "Service"),
    endpoints=[("192.0.2.1", 8443), ("192.0.2.2", 8443)],
    deployment=SERVICE,
    pods=[pod(), pod()],
    deployments=[OPERATOR],
    crd=crd("v2beta1"),
    kueue_config=None,
    certificates=Certificates(
        source=SELF_MANAGED,
        namespace="mpijob-webhook",
        secret="mpijob-webhook-ca",
        data={"ca.crt": CA.certificate_pem, "ca.key": CA.key_pem},
        bundles=bundles(CA.certificate_pem),
        served={("192.0.2.1", 8443): chain(LEAF.certificate_pem)},
        server_name=HOST,
    ),
    rights=HAS,
    policies=Policies(2),
)


def with_arguments(*arguments: str) -> Any:
    return changed({f"{CONTAINER}.args": ["serve", *arguments]}, SERVICE)


def with_flags(*flags: str) -> Any:
    return changed({f"{CONTAINER}.args": ["-alsologtostderr", *flags]}, OPERATOR)


def with_kueue(config: Any) -> dict[str, Any]:
    text = config if isinstance(config, str) else json.dumps(config)
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    config_map = {"metadata": metadata} | ({} if config is None else {"data": {"controller_manager_config.yaml": text}})
    return {"mutating": [stored(MUTATING), KUEUE_WEBHOOK], "deployments": [OPERATOR, KUEUE], "kueue_config": config_map}


def hook(name: str, **changes: Any) -> dict[str, Any]:
    """The configurations with one hook changed. A field with None is removed."""
    configurations = {"mutating": [stored(MUTATING)], "validating": [stored(VALIDATING)]}
    for (configuration,) in configurations.values():
        for hook in configuration["webhooks"]:
            if hook["name"].startswith(f"{name}."):
                hook.update(changes)
                for field in [field for field, value in changes.items() if value is None]:
                    del hook[field]
    return configurations


def named(name: str, **labels: str) -> dict[str, Any]:
    return {"mutating": [{**stored(MUTATING), "metadata": {"name": name, "labels": labels}}, KUEUE_WEBHOOK]}


def certificates(**changes: Any) -> dict[str, Any]:
    return {"certificates": replace(HEALTHY.certificates, **changes)}


def denied(*missing: Right, granted: tuple[Right, ...] = ()) -> dict[str, Any]:
    return {"rights": {**HAS, **dict.fromkeys(missing, False), **dict.fromkeys(granted, True)}}


GOOD_KUEUE = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "integrations": {"frameworks": ["kubeflow.org/mpijob"]}}
OTHER_KUEUE = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "integrations": {"frameworks": ["batch/job"]}}
FILES_MOUNTED: dict[str, Any] = {"source": FILES, "secret": "mpijob-webhook-tls"}
CRASHING = pod(ready=False, containerStatuses=[{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}])
