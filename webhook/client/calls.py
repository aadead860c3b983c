"""Sends single requests to the API server, in plain JSON.

The configuration and the connections are from the official client. That client's models are ten times slower than JSON,
and its informers and watches can flood the API server after a failure.
"""

import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import yaml

from webhook.client.access import DEFAULT_NAMESPACE, NO_IMPERSONATION, Access, Impersonation
from webhook.client.limits import MAX_CALL_SECONDS

Address = tuple[str, int]


# Content types of a PATCH.
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
DEFAULT_KUBECONFIG = "~/.kube/config"
# The official loader raises these for invalid kubeconfigs and certificates.
UNUSABLE = (yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError)


class ClusterError(Exception):
    """The cluster cannot be used. The message has one line."""


class ApiError(ClusterError):
    """The API server has denied a request with an HTTP `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Sends requests to one API server. The caller must close the client."""

    server_time: datetime | None = None
    """The time of the last answer, by the clock of the API server."""
    namespace = DEFAULT_NAMESPACE
    """The namespace of the kubeconfig's context."""

    def __init__(self, api: Any, host: str, load: Callable[[], Awaitable[Any]]) -> None:
        self.raw = api
        """The official client's ApiClient."""
        self.host = host
        self._load = load
        # The API server's time minus the monotonic clock. Until the first answer, the local wall clock is used.
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970 by the API server's clock, which is the same for all replicas."""
        return time.monotonic() + self._ahead

    def _adjust_clock(self, date: datetime, sent: float) -> None:
        # `date` has whole seconds. The API server wrote it between `sent`, the monotonic time of the request, and now.
        self.server_time = date
        earliest, latest = date.timestamp() - time.monotonic(), date.timestamp() + 1 - sent
        self._ahead = min(max(self._ahead, earliest), latest)

    async def renew(self) -> None:
        """Read the credentials again. The official client renews only some kinds of credentials, and with a delay."""
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
        """The object that the API server returns; ClusterError if it returns none within `MAX_CALL_SECONDS`.

        `patch` is the content type of a PATCH. By default, a list is a JSON patch and an object is a server-side apply.
        """
        headers = {"Accept": accept}
        if method == "PATCH":
            headers["Content-Type"] = patch or (JSON_PATCH if isinstance(body, list) else APPLY)
        answer = _json(await self._authorised(method, path, body, headers))
        if answer is None:
            raise ClusterError(f"what answers at {self.host} is not an API server")
        return answer

    async def text(self, path: str) -> str:
        """The plain text at `path`, such as a log; ClusterError if it cannot be read."""
        return (await self._authorised("GET", path, None, {"Accept": "*/*"})).decode(errors="replace")

    async def _authorised(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        try:
            return await self._request(method, path, body, headers)
        except ApiError as error:
            if error.status != 401:
                raise
        # The token may have expired. The official client does not notice this if the wall clock was set back.
        await self.renew()
        return await self._request(method, path, body, headers)

    async def _request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        try:
            prepared = await self.raw.param_serialize(
                method=method, resource_path=path, body=body, header_params=headers, auth_settings=["BearerToken"]
            )
        except Exception as error:  # noqa: BLE001 - loaders of credentials raise any exception
            raise ClusterError(f"cannot use the credentials for {self.host}: {type(error).__name__}") from None
        sent = time.monotonic()
        try:
            response = await self.raw.call_api(*prepared, _request_timeout=MAX_CALL_SECONDS)
            data = await response.read()
        except TimeoutError:
            raise ClusterError(f"the API server at {self.host} does not answer") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterError(f"cannot reach the API server at {self.host}: {_problem(error)}") from None
        with suppress(KeyError, ValueError):
            self._adjust_clock(parsedate_to_datetime(response.response.headers["Date"]), sent)
        if not 200 <= response.status < 300:
            answer = " ".join(str((_json(data) or {}).get("message") or "no reason given").split())
            message = f"the API server at {self.host} rejected the request: {answer} ({response.status})"
            if response.status == 401:
                message = f"the API server at {self.host} does not accept the credentials (401)"
            raise ApiError(response.status, message)
        return bytes(data)

    async def close(self) -> None:
        await self.raw.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def connect(access: Access | Path | None) -> Client:
    """A client for a cluster; ClusterError if the kubeconfig cannot be used. No request is sent.

    Without a kubeconfig, the client uses the first of these: $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config.
    """
    access = access if isinstance(access, Access) else Access(access)
    source = _source(access.kubeconfig)
    from kubernetes.aio import client, config  # noqa: PLC0415 - the import takes 0.8 s, and most commands need no cluster

    from webhook.client import kubeconfig  # noqa: PLC0415

    configuration = client.Configuration()

    async def load() -> tuple[Impersonation, str]:
        if source is not None:
            return await kubeconfig.load(source, access.context, configuration)
        config.load_incluster_config(client_configuration=configuration)
        return NO_IMPERSONATION, DEFAULT_NAMESPACE

    try:
        configured, namespace = await load()
        impersonation = access.impersonation.over(configured)
        configuration.proxy = configuration.proxy or _proxy(configuration.host)
        # With `trust_env`, aiohttp would look up proxies in a thread and read ~/.netrc for every request.
        configuration.client_session_kwargs = {"headers": impersonation.headers, "trust_env": False}
        api = client.ApiClient(configuration=configuration)
    except (config.ConfigException, *UNUSABLE) as error:
        raise ClusterError(f"cannot use {source or 'the service account'}: {_problem(error)}") from None
    connection = Client(api, configuration.host, load)
    connection.namespace = namespace
    return connection


def _source(kubeconfig: Path | None) -> Path | None:
    """The kubeconfig to use; None for the pod's ServiceAccount; ClusterError for an unreadable file."""
    named = str(kubeconfig) if kubeconfig is not None else os.environ.get("KUBECONFIG", "")
    if not named and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    source = Path(named or DEFAULT_KUBECONFIG).expanduser()
    if os.pathsep not in named:  # $KUBECONFIG may name several files
        try:
            source.read_bytes()
        except OSError as error:
            raise ClusterError(f"cannot read the kubeconfig {source}: {error.strerror}") from None
    elif not any(Path(path).expanduser().exists() for path in named.split(os.pathsep) if path):
        raise ClusterError(f"cannot read the kubeconfig {source}: none of these files exists")
    return source


def _proxy(host: str) -> str | None:
    url = urlsplit(host)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def _json(data: bytes) -> dict[str, Any] | None:
    """`data` as a JSON object; None for anything else."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = msgspec.json.decode(data)
        if isinstance(answer, dict):
            return answer
    return None


def _problem(error: BaseException) -> str:
    """A description of an error, on one line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate does not verify"
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "that is not a URL"
    if isinstance(error, TypeError | AttributeError | LookupError):
        return "it is not a complete kubeconfig"
    if type(error) is aiohttp.ClientConnectorError and error.errno:
        return os.strerror(error.errno)
    return " ".join((str(error) or type(error).__name__).split())
