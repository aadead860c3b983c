"""Upstream's installation of Kueue, fitted to a program on this host; the objects of Kueue's users."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import kueue


def hook(name: str, group: str, resource: str) -> dict[str, Any]:
    service = {"name": kueue.SERVICE, "namespace": kueue.NAMESPACE, "path": f"/{name}"}
    rule = {"apiGroups": [group], "resources": [resource]}
    return {"name": name, "clientConfig": {"service": service}, "rules": [rule]}


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name}, **fields}


CONVERSION = {"webhook": {"clientConfig": {"service": {"path": "/convert"}}}}
UPSTREAM = yaml.safe_dump_all(
    [
        named("Namespace", kueue.NAMESPACE),
        named("CustomResourceDefinition", "plain", spec={"group": "kueue.x-k8s.io"}),
        named("CustomResourceDefinition", "converted", spec={"conversion": CONVERSION}),
        named("Service", kueue.SERVICE, spec={"ports": [{"port": 443}]}),
        named(
            "ConfigMap",
            kueue.CONFIG_MAP,
            data={kueue.CONFIG_KEY: "kind: Configuration\nclientConnection: {qps: 50}\nwebhook: {port: 9443}\n"},
        ),
        named("Deployment", "kueue-controller-manager"),
        named("APIService", "v1beta2.visibility.kueue.x-k8s.io"),
        named(
            "MutatingWebhookConfiguration",
            "kueue-mutating-webhook-configuration",
            webhooks=[
                hook("queue", "kueue.x-k8s.io", "clusterqueues"),
                hook("job", "batch", "jobs"),
                hook("mpijob", "kubeflow.org", "mpijobs"),
                hook("pytorchjob", "kubeflow.org", "pytorchjobs"),
                hook("pod", "", "pods"),
            ],
        ),
    ]
)


def fitted(*frameworks: str) -> kueue.Installation:
    return kueue.installation(
        UPSTREAM, frameworks=frameworks, port=20001, health_port=20002, certificates=Path("/run/certificates")
    )


def test_what_serves_a_pod_goes_and_webhooks_come_last() -> None:
    parts = fitted(*kueue.FRAMEWORKS)
    names = [part["metadata"]["name"] for part in parts.objects]
    assert names == [kueue.NAMESPACE, "plain", "converted", kueue.SERVICE, kueue.CONFIG_MAP]
    assert [part["kind"] for part in parts.webhooks] == ["MutatingWebhookConfiguration"]


@pytest.mark.parametrize(
    ("frameworks", "hooks"),
    [
        ((), ["queue"]),
        (kueue.FRAMEWORKS, ["queue", "job", "mpijob"]),
        (("pod", "kubeflow.org/pytorchjob"), ["queue", "pytorchjob", "pod"]),
    ],
)
def test_hooks_are_those_in_use(frameworks: tuple[str, ...], hooks: list[str]) -> None:
    assert [hook["name"] for hook in fitted(*frameworks).webhooks[0]["webhooks"]] == hooks


def test_every_way_to_kueue_leads_to_its_port_on_this_host() -> None:
    parts = fitted("batch/job")
    _, _, converted, service, _ = parts.objects
    assert service["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    assert converted["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 20001
    clients = [hook["clientConfig"] for hook in kueue.trusting(parts.webhooks, "Q0E=")[0]["webhooks"]]
    assert {(client["service"]["port"], client["caBundle"]) for client in clients} == {(20001, "Q0E=")}


def test_config_map_has_what_kueue_runs_with() -> None:
    parts = fitted("batch/job")
    assert parts.objects[-1]["data"] == {kueue.CONFIG_KEY: parts.config}
    config = yaml.safe_load(parts.config)
    assert config["clientConnection"] == {"qps": 50}  # upstream's
    assert config["webhook"] == {"host": "127.0.0.1", "port": 20001, "certDir": "/run/certificates"}
    assert config["health"] == {"healthProbeBindAddress": "127.0.0.1:20002"}
    assert config["integrations"] == {"frameworks": ["batch/job"]}


def test_quotas_of_a_cluster_queue() -> None:
    quotas: kueue.Quotas = {"a": {"cpu": 4, "memory": "8Gi"}, "b": {"cpu": "500m", "memory": 0}}
    spec = kueue.cluster_queue("training", quotas=quotas, cohort="all", stopPolicy="Hold")["spec"]
    assert (spec["cohortName"], spec["stopPolicy"]) == ("all", "Hold")
    (group,) = spec["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["a", "b"]
    assert group["flavors"][1]["resources"] == [
        {"name": "cpu", "nominalQuota": "500m"},
        {"name": "memory", "nominalQuota": 0},
    ]
