"""Single calls to the API server, in plain JSON, over the official client's configuration and connections.

Its models, informers and watches are not used: models cost ten times as much as JSON, and the others can flood the API
server when something fails.
"""

import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import yaml

from webhook.client.access import DEFAULT_NAMESPACE, ONESELF, Access, Impersonation
from webhook.client.limits import MAX_CALL_SECONDS

Address = tuple[str, int]


# Content types of a PATCH.
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
DEFAULT_KUBECONFIG = "~/.kube/config"
# What the loader raises for a file that is not a kubeconfig, or that names invalid certificates.
UNUSABLE = (yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError)


class ClusterError(Exception):
    """The cluster cannot be used; the message says why, on one line."""


class ApiError(ClusterError):
    """The API server rejected a call with HTTP `status`; `said` is its message."""

    def __init__(self, status: int, message: str, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class Client:
    """Calls to one API server. Close it at the end."""

    server_time: datetime | None = None
    """The time of the API server's last answer, by its own clock."""
    namespace = DEFAULT_NAMESPACE
    """The default namespace: that of the kubeconfig's context."""

    def __init__(self, api: Any, host: str, load: Callable[[], Awaitable[Any]]) -> None:
        self.raw = api
        """The official client's ApiClient, for lists and watches."""
        self.host = host
        self._load = load
        # Seconds from this host's monotonic clock, which nothing can set, to the API server's clock. Until its first
        # answer this host's wall clock is used.
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970 by the API server's clock, which all replicas share."""
        return time.monotonic() + self._ahead

    def _hear(self, date: datetime, sent: float) -> None:
        """Adjust the clock to an answer's `date`, written after `sent` by the monotonic clock.

        A slow answer is imprecise and must not set the clock back.
        """
        self.server_time = date
        earliest, latest = date.timestamp() - time.monotonic(), date.timestamp() + 1 - sent
        self._ahead = min(max(self._ahead, earliest), latest)

    async def renew(self) -> None:
        """Read the credentials again: the client itself does so only for some kinds, and only now and then."""
        with suppress(*UNUSABLE):
            await self._load()

    async def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | list[dict[str, Any]] | None = None,
        *,
        accept: str = "application/json",
        patch: str = "",
    ) -> dict[str, Any]:
        """The object that the API server returns; ClusterError if there is none.

        `patch` is the content type of a PATCH. By default a list is a JSON patch, and an object a server-side apply. A
        call that takes longer than `MAX_CALL_SECONDS` has failed.
        """
        headers = {"Accept": accept}
        if method == "PATCH":
            headers["Content-Type"] = patch or (JSON_PATCH if isinstance(body, list) else APPLY)
        answer = _json(await self._authorised(method, path, body, headers))
        if answer is None:
            raise ClusterError(f"what answers at {self.host} is not an API server")
        return answer

    async def text(self, path: str) -> str:
        """Plain text at `path`, such as a log; ClusterError if there is none."""
        return (await self._authorised("GET", path, None, {"Accept": "*/*"})).decode(errors="replace")

    async def _authorised(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        try:
            return await self._request(method, path, body, headers)
        except ApiError as error:
            if error.status != 401:
                raise
        await self.renew()  # the token may have expired: the client uses the wall clock, which may have been set back
        return await self._request(method, path, body, headers)

    async def _request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        try:
            prepared = await self.raw.param_serialize(
                method=method, resource_path=path, body=body, header_params=headers, auth_settings=["BearerToken"]
            )
        except Exception as error:  # noqa: BLE001 - its loaders of credentials raise whatever they meet
            raise ClusterError(f"cannot use the credentials for {self.host}: {type(error).__name__}") from None
        sent = time.monotonic()
        try:
            response = await self.raw.call_api(*prepared, _request_timeout=MAX_CALL_SECONDS)
            data = await response.read()
        except TimeoutError:
            raise ClusterError(f"the API server at {self.host} does not answer") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterError(f"cannot reach the API server at {self.host}: {_words(error)}") from None
        with suppress(KeyError, ValueError):
            self._hear(parsedate_to_datetime(response.response.headers["Date"]), sent)
        if not 200 <= response.status < 300:
            message = " ".join(str((_json(data) or {}).get("message") or "no reason given").split())
            raise ApiError(response.status, self._refusal(response.status, message), message)
        return bytes(data)

    async def close(self) -> None:
        await self.raw.close()

    def _refusal(self, status: int, message: str) -> str:
        if status == 401:
            return f"the API server at {self.host} does not accept the credentials (401)"
        return f"the API server at {self.host} rejected the request: {message} ({status})"


async def connect(access: Access | Path | None) -> Client:
    """A client for a cluster; ClusterError if its kubeconfig cannot be used. Sends nothing yet.

    Without a kubeconfig it uses the first of these: $KUBECONFIG, the pod's ServiceAccount, the user's own file.
    """
    access = access if isinstance(access, Access) else Access(access)
    source = _source(access.kubeconfig)
    from kubernetes.aio import client, config  # noqa: PLC0415 - takes 0.8 s, and most commands need no cluster

    from webhook.client import kubeconfig  # noqa: PLC0415

    configuration = client.Configuration()

    async def load() -> tuple[Impersonation, str]:
        if source is not None:
            return await kubeconfig.load(source, access.context, configuration)
        config.load_incluster_config(client_configuration=configuration)
        return ONESELF, DEFAULT_NAMESPACE

    try:
        configured, namespace = await load()
        impersonation = access.impersonation.over(configured)
        configuration.proxy = configuration.proxy or _proxy(configuration.host)
        # With `trust_env`, aiohttp would look up proxies in another thread, and read ~/.netrc, at every call.
        configuration.client_session_kwargs = {"headers": impersonation.headers, "trust_env": False}
        api = client.ApiClient(configuration=configuration)
    except (config.ConfigException, *UNUSABLE) as error:
        raise ClusterError(f"cannot use {source or 'the service account'}: {_words(error)}") from None
    connected = Client(api, configuration.host, load)
    connected.namespace = namespace
    return connected


def _source(kubeconfig: Path | None) -> Path | None:
    """The kubeconfig to use, None for the pod's ServiceAccount; ClusterError for an unreadable file."""
    named = str(kubeconfig) if kubeconfig is not None else os.environ.get("KUBECONFIG", "")
    if not named and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    source = Path(named or DEFAULT_KUBECONFIG).expanduser()
    if os.pathsep not in named:  # $KUBECONFIG may name several files
        try:
            source.read_bytes()
        except OSError as error:
            raise ClusterError(f"cannot read the kubeconfig {source}: {error.strerror}") from None
    elif not any(Path(each).expanduser().exists() for each in named.split(os.pathsep) if each):
        raise ClusterError(f"cannot read the kubeconfig {source}: none of these files exists")
    return source


def _proxy(host: str) -> str | None:
    """The proxy that the environment has for the API server."""
    url = urlsplit(host)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def _json(data: bytes) -> dict[str, Any] | None:
    """`data` as a JSON object; None for anything else."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = msgspec.json.decode(data)
        if isinstance(answer, dict):
            return answer
    return None


def _words(error: BaseException) -> str:
    """The error on one line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate does not verify"
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "that is not a URL"
    if isinstance(error, TypeError | AttributeError | LookupError):
        return "it is not a complete kubeconfig"
    if type(error) is aiohttp.ClientConnectorError and error.errno:
        return os.strerror(error.errno)
    return " ".join((str(error) or type(error).__name__).split())
