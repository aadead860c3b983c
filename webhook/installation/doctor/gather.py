"""Reads a cluster for the checks. It also sends access reviews and a dry run, which store no objects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from webhook import PROGRAM
from webhook.api import mpijob
from webhook.client.access_reviews import Right
from webhook.client.calls import Address, ApiError, Client
from webhook.client.objects import KubernetesObject, get, listed
from webhook.cluster.resource import KUEUE_NAMESPACE
from webhook.cluster.resources.kueue_config import NAME as KUEUE_CONFIG
from webhook.installation.certificate_store import CRD
from webhook.installation.doctor import certificates, facts, rights
from webhook.installation.doctor.certificates import Certificates
from webhook.installation.doctor.unread import Unread, attempt
from webhook.installation.registration import API, RESOURCES
from webhook.kit.settings import Action
from webhook.policy import store
from webhook.policy.document import PolicyDocument
from webhook.policy.in_force import policy_model
from webhook.policy.store import REMEMBERED, PolicySource

APPS: Final = "/apis/apps/v1"
# The value of the operator's option --gang-scheduling for Volcano.
VOLCANO: Final = "volcano"
SELECTOR: Final = f"app.kubernetes.io/name={PROGRAM}"
# The probe creates this job as a dry run, to see whether the hooks answer. No rule rejects the job.
JOB: Final = {
    "apiVersion": mpijob.API_VERSION,
    "kind": "MPIJob",
    "metadata": {"generateName": f"{PROGRAM}-doctor-"},
    "spec": {
        "slotsPerWorker": 1,
        "runPolicy": {"suspend": True, "cleanPodPolicy": "Running"},
        "mpiReplicaSpecs": {
            role: {"replicas": replicas, "template": {"spec": {"containers": [{"name": "mpi", "image": "probe:1"}]}}}
            for role, replicas in (("Launcher", 1), ("Worker", 2))
        },
    },
}


async def gather(
    api: Client, location: facts.Location, *, ca_secret: str = "", address: Address | None = None, probe: str = ""
) -> facts.Facts:
    """Reads everything; ClusterError if the API server cannot be used.

    `address` is the address of a replica, and replaces the endpoints of the Service. `probe` is the namespace of the
    job that is created as a dry run; empty for no probe.
    """
    version = await api.request("GET", "/version")
    clock, now = api.server_time, datetime.now(UTC)
    ours = await _service_state(api, location, ca_secret, address)
    kueue = location.kueue_namespace or facts.arguments(ours["deployment"]).get("--kueue-namespace") or KUEUE_NAMESPACE
    location = replace(location, kueue_namespace=kueue)
    configmap = f"{_within(kueue)}/configmaps/{KUEUE_CONFIG}"
    return facts.Facts(
        location=location,
        now=now,
        server_time=clock,
        version=version,
        **ours,
        pods=await attempt(listed(api, f"{_within(location.namespace)}/pods", labelSelector=SELECTOR)),
        deployments=await attempt(listed(api, f"{APPS}/deployments")),
        crd=await attempt(get(api, CRD)),
        kueue_config=await attempt(get(api, configmap)),
        rights=await attempt(_rights(api, location, ours["deployment"], ours["certificates"])),
        policies=await attempt(_policies(api, location.namespace)),
        probe=await _probe(api, probe) if probe else None,
    )


async def read_certificates(
    api: Client, location: facts.Location, *, ca_secret: str, address: Address | None
) -> Certificates:
    """Reads only the certificates; ClusterError if the API server cannot be used."""
    await api.request("GET", "/version")
    result: Certificates = (await _service_state(api, location, ca_secret, address))["certificates"]
    return result


async def _service_state(
    api: Client, location: facts.Location, ca_secret: str, address: Address | None
) -> dict[str, Any]:
    """The facts about the objects of the service, by the names of the fields of `Facts`."""
    mutating, validating = [await attempt(listed(api, f"{API}/{plural}")) for plural in RESOURCES.values()]
    service = await attempt(get(api, f"{_within(location.namespace)}/services/{quote(location.service, safe='')}"))
    deployment = await attempt(
        get(api, f"{APPS}/namespaces/{quote(location.namespace, safe='')}/deployments/{PROGRAM}")
    )
    addresses = certificates.addresses(
        api, namespace=location.namespace, service=service, port=_port(mutating) or _port(validating) or 443
    )
    endpoints = await attempt(addresses)
    state = await certificates.read(
        api,
        namespace=location.namespace,
        service=location.service,
        deployment=deployment,
        options=facts.arguments(deployment),
        ca_secret=ca_secret,
        addresses=[address] if address else () if isinstance(endpoints, Unread) else endpoints,
    )
    return {
        "mutating": mutating,
        "validating": validating,
        "service": service,
        "endpoints": endpoints,
        "deployment": deployment,
        "certificates": state,
    }


def _port(configurations: Sequence[KubernetesObject] | Unread) -> int | None:
    ours = None if isinstance(configurations, Unread) else facts.configuration(configurations)
    ports = [
        hook["clientConfig"]["service"].get("port")
        for hook in facts.hooks(ours or {})
        if "service" in hook["clientConfig"]
    ]
    return next(iter(ports), None)


async def _rights(
    api: Client, location: facts.Location, deployment: object, state: Certificates
) -> Mapping[Right, bool]:
    options, account = facts.arguments(deployment), PROGRAM
    if isinstance(deployment, Mapping):
        account = deployment["spec"]["template"]["spec"].get("serviceAccountName") or "default"
    purposes = rights.purposes(location, ca_secret=state.ca_secret, options=options)
    queried = [right for purpose in purposes for right in purpose.rights]
    queried += rights.excess(location, options=options)
    return await rights.granted(api, account, location.namespace, queried)


async def _policies(api: Client, namespace: str) -> facts.Policies:
    configmaps = await listed(api, f"{_within(namespace)}/configmaps")
    remembered: KubernetesObject = {}
    sources: list[PolicySource] = []
    unlabelled: dict[str, Mapping[str, Any]] = {}
    for configmap in configmaps:
        name, data = configmap["metadata"]["name"], configmap.get("data") or {}
        if name == REMEMBERED:
            remembered = data
        if (configmap["metadata"].get("labels") or {}).get(store.LABEL) == "true":
            sources.append(PolicySource(name, "", "", data.get(store.KEY)))
        elif name != REMEMBERED:
            unlabelled[name] = data
    loaded = store.load(sources, store.remembered_texts(remembered), policy_model())
    return facts.Policies(
        len(sources),
        {name: (loaded.states[name], error) for name, error in loaded.errors.items()},
        unlabelled=[name for name, data in unlabelled.items() if store.KEY in data],
        misplaced={name: key for name, data in unlabelled.items() if (key := store.misplaced(data))},
        elsewhere=await attempt(_elsewhere(api, namespace)),
        gangs={layer.name: flag for layer in loaded.layers if (flag := _gang_scheduling(layer.document))},
    )


def _gang_scheduling(document: PolicyDocument) -> str:
    """The value of the operator's option --gang-scheduling that a policy assumes; empty if it assumes none."""
    queue, gang = (document.settings_of_rule(rule) for rule in ("volcano-queue", "gang"))
    if document.injects("volcano-queue") or (
        queue.action is not Action.OFF and getattr(queue, "gang_scheduling", False)
    ):
        return VOLCANO
    return getattr(gang, "scheduler", "") if gang.action is not Action.OFF else ""


async def _elsewhere(api: Client, namespace: str) -> list[tuple[str, str]]:
    """(namespace, name) of policies in namespaces that the service does not read."""
    configmaps = await listed(api, "/api/v1/configmaps", labelSelector=store.LABEL)
    policies = [(configmap["metadata"]["namespace"], configmap["metadata"]["name"]) for configmap in configmaps]
    return [policy for policy in policies if policy[0] != namespace]


async def _probe(api: Client, namespace: str) -> facts.Probe:
    path = f"/apis/{mpijob.API_VERSION}/namespaces/{quote(namespace, safe='')}/mpijobs?dryRun=All"
    try:
        await api.request("POST", path, JOB)
    except ApiError as error:
        return facts.Probe(namespace, str(error))
    return facts.Probe(namespace)


def _within(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}"
