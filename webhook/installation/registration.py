"""The two webhook configurations, and their installation for development (`serve --register`).

The API server calls mutating hooks in the order of their configurations' names, and our name sorts before Kueue's. The
mutating hook fails open and the validating hook fails closed, as the Kubernetes project recommends
(https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/).

The hook for SSH keys fails closed too: no job runs with keys that the policy forbids. The operator retries until the
service answers. The hook must never block an unrelated Secret. Therefore it selects Secrets by namespace, by the
operator's label, and by match conditions. A match condition must not fail for any Secret, because the API server would
reject that Secret.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence, Set
from pkgutil import resolve_name
from typing import Any

from webhook import PROGRAM
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get
from webhook.kit import optional_parts
from webhook.policy.store import LABEL

NAME = "admission.mpijob.training.openshift.io"
DOMAIN = "mpijob.training.openshift.io"
MADE_BY = "app.kubernetes.io/managed-by"
BY_REGISTER = f"{PROGRAM}-register"
TIMEOUT_SECONDS = 5
# Longer than TIMEOUT_SECONDS, because the review of a policy evaluates the policy for every existing job.
POLICY_TIMEOUT_SECONDS = 10
# New keys may have to be generated first, and several requests may be waiting for keys.
KEYS_TIMEOUT_SECONDS = 10
NAMESPACE_NAME = "kubernetes.io/metadata.name"
# In CEL, reading an absent field is an error, and so is using a value of an unexpected type.
MATCH_CONDITIONS = {
    "ssh-keys-of-an-mpijob": (
        "has(object.type) && object.type == 'kubernetes.io/ssh-auth' && "
        "has(object.metadata.name) && has(object.metadata.ownerReferences) && "
        "object.metadata.ownerReferences.exists(owner, "
        "has(owner.controller) && owner.controller == true && has(owner.kind) && owner.kind == 'MPIJob' && "
        "has(owner.apiVersion) && owner.apiVersion.startsWith('kubeflow.org/') && "
        "has(owner.name) && object.metadata.name == owner.name + '-ssh')"
    ),
}
# Removing a finalizer is an UPDATE, which must work while no replica answers. Only the stored object is checked for a
# deletionTimestamp, because a user can write one into the new object with server-side apply.
NOT_BEING_DELETED = (
    "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp) || "
    "(has(object.spec) ? !has(oldObject.spec) || object.spec != oldObject.spec : has(oldObject.spec))"
)
CHANGES = ["CREATE", "UPDATE"]
RESOURCES = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
API = "/apis/admissionregistration.k8s.io/v1"

ClientConfig = Callable[[str], dict[str, Any]]
"""Returns the `clientConfig` for the path of a hook."""


def by_url(base: str, ca_pem: bytes) -> ClientConfig:
    """Lets the API server call the URL `base`, such as `https://192.0.2.7:9443`, and trust the CAs in `ca_pem`."""
    return lambda path: {"url": base + path, "caBundle": b64encode(ca_pem).decode("ascii")}


def by_service(namespace: str, name: str, *, port: int = 443) -> ClientConfig:
    """Lets the API server call a Service. The caBundle must be filled in later."""
    return lambda path: {"service": {"namespace": namespace, "name": name, "port": port, "path": path}}


def configurations(
    client_config: ClientConfig,
    *,
    labels: Mapping[str, str],
    policy_namespace: str,
    options: Set[str] = frozenset(),
) -> list[dict[str, Any]]:
    """The mutating and the validating webhook configuration.

    The policy hook gets only labelled ConfigMaps in `policy_namespace`. The other hooks get nothing from this
    namespace. `options` of `serve` add the hooks of optional parts.
    """
    jobs = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v2beta1"], "resources": ["mpijobs"]}
    configmaps = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    mutating = make_hook("mutate", client_config("/mutate-mpijob"), jobs, CHANGES, failure_policy="Ignore")
    mutating["reinvocationPolicy"] = "IfNeeded"
    keys = _keys_hook(client_config("/mutate-ssh-secret"), policy_namespace)
    validating = make_hook("validate", client_config("/validate-mpijob"), jobs, CHANGES, failure_policy="Fail")
    for hook in (mutating, validating):
        hook["namespaceSelector"] = users_namespaces(policy_namespace)
        hook["matchConditions"] = [{"name": "not-being-deleted", "expression": NOT_BEING_DELETED}]
    # A review has a side effect: it reserves the resources of an admitted job in its quotas.
    validating["sideEffects"] = "NoneOnDryRun"
    policy = make_hook("policy", client_config("/validate-policy"), configmaps, CHANGES, failure_policy="Fail")
    # A deletion is never rejected and only gets warnings, so the namespace can be deleted after the service is removed.
    removal = make_hook(
        "policy-removal", client_config("/validate-policy"), configmaps, ["DELETE"], failure_policy="Ignore"
    )
    for hook in (policy, removal):
        hook["namespaceSelector"] = {"matchLabels": {NAMESPACE_NAME: policy_namespace}}
        # The API server applies the selector to the old and the new object, so the hook also gets a removal of the
        # label.
        hook["objectSelector"] = {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
        hook["timeoutSeconds"] = POLICY_TIMEOUT_SECONDS
    more = [
        hook
        for part in optional_parts.of(options)
        if part.webhooks
        for hook in resolve_name(part.webhooks)(client_config, policy_namespace)
    ]
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": PROGRAM, **labels}},
            "webhooks": hooks,
        }
        for kind, hooks in zip(RESOURCES, ([mutating, keys], [validating, policy, removal, *more]), strict=True)
    ]


async def make_namespace(client: Client, name: str) -> None:
    """Creates the namespace for policies and quota reservations, unless it exists. It is not removed at the end."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {MADE_BY: BY_REGISTER}}}
    try:
        await client.request("POST", "/api/v1/namespaces", namespace)
    except ApiError as error:
        if error.status != 409:
            raise


def _keys_hook(client_config: Mapping[str, Any], own_namespace: str) -> dict[str, Any]:
    secrets = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}
    hook = make_hook("ssh-keys", client_config, secrets, ["CREATE"], failure_policy="Fail")
    hook["namespaceSelector"] = users_namespaces(own_namespace)
    hook["objectSelector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    hook["matchConditions"] = [{"name": name, "expression": cel} for name, cel in MATCH_CONDITIONS.items()]
    # A later webhook may change the Secret. This hook must not overwrite the change.
    hook["reinvocationPolicy"] = "Never"
    hook["timeoutSeconds"] = KEYS_TIMEOUT_SECONDS
    return hook


def users_namespaces(own_namespace: str) -> dict[str, Any]:
    """A selector of all namespaces except kube-system and the namespace of the service."""
    excluded = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system", own_namespace]}
    return {"matchExpressions": [excluded]}


def make_hook(
    verb: str,
    client_config: Mapping[str, Any],
    resources: Mapping[str, list[str]],
    operations: list[str],
    *,
    failure_policy: str,
) -> dict[str, Any]:
    return {
        "name": f"{verb}.{DOMAIN}",
        "clientConfig": client_config,
        "rules": [{**resources, "scope": "Namespaced", "operations": operations}],
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


class Registration:
    """Webhook configurations that exist while a development server runs.

    The manifests install objects with the same names. Therefore only objects with the label of `--register` are
    replaced or removed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # The uid by path; None if the answer to the creation did not arrive.
        self._installed: dict[str, str | None] = {}
        self._closing: asyncio.Task[None] | None = None

    async def install(self, configurations: Sequence[Mapping[str, Any]]) -> None:
        """Creates all `configurations`, and replaces those of an earlier run. After a ClusterError none is left."""
        stale = [(path, uid) for path in map(_path, configurations) if (uid := await self._stale(path))]
        for path, uid in stale:
            await self._delete(path, uid)
        try:
            for configuration in configurations:
                await self._create(configuration)
        except ClusterError:
            await self.remove()
            raise

    async def close(self) -> None:
        """Removes the configurations, and closes the connection to the cluster; ClusterError if an object may be left.

        Cancelling a call does not stop the removal. The next call waits for the removal.
        """
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self.remove()
        finally:
            await self._client.close()

    async def remove(self) -> None:
        """Deletes the objects that `install` created; ClusterError if an object may be left."""
        problems = []
        while self._installed:
            path, uid = self._installed.popitem()
            try:
                if created := uid or await self._stale(path):
                    await self._delete(path, created)
            except ClusterError as error:
                problems.append(f"{path.rsplit('/', 2)[-2]}/{NAME} may be left behind: {error}")
        if problems:
            raise ClusterError("; ".join(problems))

    async def _create(self, configuration: Mapping[str, Any]) -> None:
        path = _path(configuration)
        self._installed[path] = None
        try:
            created = await self._client.request("POST", path.removesuffix(f"/{NAME}"), dict(configuration))
        except ApiError:
            del self._installed[path]
            raise
        self._installed[path] = created["metadata"]["uid"]

    async def _stale(self, path: str) -> str | None:
        """The uid of an object of an earlier `--register` at `path`; ClusterError if another tool created it."""
        stored = await get(self._client, path)
        if stored is None:
            return None
        if (stored["metadata"].get("labels") or {}).get(MADE_BY) != BY_REGISTER:
            raise ClusterError(
                f"{path.rsplit('/', 2)[-2]}/{NAME} exists and was not made by --register; "
                "use another cluster, or uninstall the webhook from this one first"
            )
        return str(stored["metadata"]["uid"])

    async def _delete(self, path: str, uid: str) -> None:
        try:
            await self._client.request("DELETE", path, {"preconditions": {"uid": uid}})
        except ApiError as error:
            if error.status not in {404, 409}:
                raise


def _path(configuration: Mapping[str, Any]) -> str:
    return f"{API}/{RESOURCES[configuration['kind']]}/{configuration['metadata']['name']}"
