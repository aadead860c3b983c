"""Reads kubeconfigs as kubectl does. Features that the official client ignores are supported or rejected.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kubernetes.aio.config import kube_config

from webhook.api.names import closest_name
from webhook.client.access import DEFAULT_NAMESPACE, Impersonation, KubeconfigError

_CLUSTER: Final = frozenset({
    "server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name",
    "proxy-url", "disable-compression", "extensions",
})  # fmt: skip
_AUTHORITIES: Final = ("certificate-authority", "certificate-authority-data")
_USER: Final = frozenset({
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "username",
    "password", "exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra", "extensions",
})  # fmt: skip
_NAMED_BY_CONTEXT: Final = ", which its context names"
_PROXIES: Final = frozenset({"http", "https"})  # the schemes that aiohttp supports
_REMOVED: Final = "since 1.26 kubectl supports only oidc; use a plugin under exec"


class _Loader(kube_config.KubeConfigLoader):  # type: ignore[misc]  # untyped
    # If a credential plugin returns nothing, the official loader continues as anonymous user.
    async def load_from_exec_plugin(self) -> bool:
        if not await super().load_from_exec_plugin():
            raise KubeconfigError("the plugin under exec of its user gave no credentials")
        return True


async def load(source: Path, context: str | None, configuration: Any) -> tuple[Impersonation, str]:
    """Fill the official client's `configuration`, and return the impersonation and the namespace.

    `source` may name several files, like $KUBECONFIG. KubeconfigError for unsupported features. Invalid files raise the
    exceptions of the official client.
    """
    merger = kube_config.KubeConfigMerger(str(source))
    name = context or _current_context(merger.config_files.values())
    merged = merger.config
    context_entry = _named(merged, "context", name, "")
    cluster = _part(_named(merged, "cluster", context_entry.get("cluster"), _NAMED_BY_CONTEXT), "cluster", _CLUSTER)
    user: Mapping[str, Any] = {}
    if user_name := context_entry.get("user"):
        user = _part(_named(merged, "user", user_name, _NAMED_BY_CONTEXT), "user", _USER)
    _check_cluster(cluster)
    _check_user(user)
    impersonation = _impersonation(user)
    await _Loader(merged, active_context=name, config_base_path=None).load_and_set(configuration)
    if token := configuration.api_key.get("BearerToken"):
        token = token.strip()  # a token file ends with a line break
        if not token.isprintable():
            raise KubeconfigError("its token contains control characters")
        configuration.api_key["BearerToken"] = token
    return impersonation, context_entry.get("namespace") or DEFAULT_NAMESPACE


def _current_context(files: Iterable[Any]) -> str:
    # As in kubectl, the first file with a current context applies. The official client uses the last file.
    for file in files:
        if isinstance(file, dict) and (name := file.get("current-context")):
            return str(name)
    raise KubeconfigError("it has no current-context: name one with --context")


def _named(merged: Any, kind: str, name: Any, origin: str) -> Any:
    """The context, cluster or user with this name. The message about a missing entry contains `origin`."""
    entries = merged.safe_get(f"{kind}s") or []
    entry = merged[f"{kind}s"].get_with_name(name, safe=True) if entries else None
    if entry is None:
        near = closest_name(str(name), [str(entry.value.get("name")) for entry in entries])
        hint = f'; did you mean "{near}"?' if near else ""
        raise KubeconfigError(f'it has no {kind} "{name}"{origin}{hint}')
    return entry.value.get(kind) or {}


def _part(value: Any, name: str, supported: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise KubeconfigError(f"its {name} is not a mapping")
    if unsupported := [str(key) for key in value if key not in supported]:
        raise KubeconfigError(f"{', '.join(unsupported)} of its {name} is not supported")
    return value


def _check_cluster(cluster: Mapping[str, Any]) -> None:
    if not cluster.get("server"):
        raise KubeconfigError("its cluster has no server")
    if cluster.get("insecure-skip-tls-verify") and any(map(cluster.get, _AUTHORITIES)):
        raise KubeconfigError("its cluster has a certificate-authority and insecure-skip-tls-verify, keep one of them")
    proxy = cluster.get("proxy-url")
    if proxy and urlsplit(str(proxy)).scheme not in _PROXIES:
        raise KubeconfigError(f"the proxy-url {proxy} is not supported, only http and https")


def _check_user(user: Mapping[str, Any]) -> None:
    provider = user.get("auth-provider")
    if provider is not None and (not isinstance(provider, dict) or provider.get("name") != "oidc"):
        name = provider.get("name") if isinstance(provider, dict) else provider
        raise KubeconfigError(f"the auth-provider {name} is not supported: {_REMOVED}")
    if user.get("token") and user.get("tokenFile"):
        raise KubeconfigError("its user has a token and a tokenFile, keep one of them")
    plugin = user.get("exec")
    if plugin is None:
        return
    if user.get("token"):
        raise KubeconfigError("its user has a token and a plugin under exec, keep one of them")
    command = plugin.get("command") if isinstance(plugin, dict) else None
    if not isinstance(command, str):
        raise KubeconfigError("exec of its user has no command")
    if plugin.get("provideClusterInfo"):
        raise KubeconfigError(f"provideClusterInfo of the plugin {command} under exec is not supported")
    if "/" in command and not Path(command).is_absolute():
        raise KubeconfigError(f"the plugin {command} under exec has a relative path: write the full path")


def _impersonation(user: Mapping[str, Any]) -> Impersonation:
    name, uid, groups, extra = (user.get(key) for key in ("as", "as-uid", "as-groups", "as-user-extra"))
    if not (isinstance(name, str | None) and isinstance(uid, str | None)):
        raise KubeconfigError("as and as-uid of its user must be text")
    if not (groups is None or _texts(groups)):
        raise KubeconfigError("as-groups of its user must be a list of texts")
    if not (extra is None or (isinstance(extra, dict) and all(map(_texts, extra.values())))):
        raise KubeconfigError("as-user-extra of its user must be a mapping to lists of texts")
    return Impersonation(name or "", tuple(groups or ()), uid or "", extra or {})


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
