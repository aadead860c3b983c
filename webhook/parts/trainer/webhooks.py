"""The hooks for TrainJobs and for runtimes with an MPI policy."""

from typing import Final

from webhook.client.objects import KubernetesObject
from webhook.installation.registration import CHANGES, NOT_BEING_DELETED, ClientConfig, make_hook, users_namespaces
from webhook.parts.trainer import kinds

# With this condition, runtimes of other kinds of training do not depend on this service.
OF_MPI: Final = "has(object.spec.mlPolicy) && has(object.spec.mlPolicy.mpi)"
_OF_JOBS, _OF_RUNTIMES, _OF_CLUSTER = "train-jobs", "training-runtimes", "cluster-training-runtimes"
RESOURCES: Final = {_OF_JOBS: "trainjobs", _OF_RUNTIMES: "trainingruntimes", _OF_CLUSTER: "clustertrainingruntimes"}


def hooks(client_config: ClientConfig, policy_namespace: str) -> list[KubernetesObject]:
    result = []
    for name, resource in RESOURCES.items():
        rule = {"apiGroups": [kinds.GROUP], "apiVersions": ["v1alpha1"], "resources": [resource]}
        hook = make_hook(name, client_config("/validate-trainer"), rule, CHANGES, failure_policy="Fail")
        conditions = {"not-being-deleted": NOT_BEING_DELETED}
        if name == _OF_CLUSTER:
            hook["rules"][0]["scope"] = "Cluster"
        else:
            hook["namespaceSelector"] = users_namespaces(policy_namespace)
        if name != _OF_JOBS:
            conditions["of-mpi"] = OF_MPI
        hook["matchConditions"] = [{"name": key, "expression": cel} for key, cel in conditions.items()]
        result.append(hook)
    return result
