"""API access: the official client's configuration, authentication and connection, and single calls on plain JSON.

Its models, informers and watches are left alone: models cost ten times the JSON, the others fail in ways that flood
the API server.
"""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

Address = tuple[str, int]


# Seconds; the API server itself gives most requests 60.
CALL_TIMEOUT = 10.0
DEFAULT_KUBECONFIG = "~/.kube/config"
# How the loader fails on a file that is no kubeconfig, or names certificates that are none.
UNUSABLE = (yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError)


class ClusterError(Exception):
    """The cluster cannot be used; the message is one line for a human."""


class ApiError(ClusterError):
    """The API server refused a call with HTTP `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Calls to one API server. Close it at the end."""

    server_time: datetime | None = None
    """When the API server sent its last answer, by its own clock."""

    def __init__(self, api: Any, host: str, load: Callable[[], Awaitable[None]]) -> None:
        self._api = api
        self.host = host
        self._load = load

    async def renew(self) -> None:
        """Read the credentials anew: the client does so for some kinds only, and only now and then."""
        with suppress(*UNUSABLE):
            await self._load()

    @property
    def raw(self) -> Any:
        """The official client's ApiClient, for lists and watches."""
        return self._api

    async def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | list[dict[str, Any]] | None = None,
        *,
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """The object that the API server answers to `method` on `path`; ClusterError when there is none.

        The body of a PATCH is a JSON patch. A call that takes longer than `CALL_TIMEOUT` has failed.
        """
        headers = {"Accept": accept}
        if method == "PATCH":
            headers["Content-Type"] = "application/json-patch+json"
        try:
            return await self._request(method, path, body, headers)
        except ApiError as error:
            if error.status != 401:
                raise
        await self.renew()  # tokens expire, and the client goes by a clock that may have been set back
        return await self._request(method, path, body, headers)

    async def _request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> dict[str, Any]:
        try:
            prepared = await self._api.param_serialize(
                method=method, resource_path=path, body=body, header_params=headers, auth_settings=["BearerToken"]
            )
        except Exception as error:  # noqa: BLE001 - its loaders of credentials raise whatever they meet
            raise ClusterError(f"cannot use the credentials for {self.host}: {type(error).__name__}") from None
        try:
            response = await self._api.call_api(*prepared, _request_timeout=CALL_TIMEOUT)
            data = await response.read()
        except TimeoutError:
            raise ClusterError(f"the API server at {self.host} does not answer") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterError(f"cannot reach the API server at {self.host}: {_words(error)}") from None
        with suppress(KeyError, ValueError):
            self.server_time = parsedate_to_datetime(response.response.headers["Date"])
        answer = _json(data)
        if not 200 <= response.status < 300:
            raise ApiError(response.status, self._refusal(response.status, answer))
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    def _refusal(self, status: int, answer: dict[str, Any]) -> str:
        if status == 401:
            return f"the API server at {self.host} does not accept the credentials (401)"
        message = " ".join(str(answer.get("message") or "no reason given").split())
        return f"the API server at {self.host} refuses: {message} ({status})"


async def connect(kubeconfig: Path | None, *, context: str | None = None) -> Client:
    """A client for the cluster of `kubeconfig`, by default of $KUBECONFIG, of the pod that we are in, or of the user.

    `context` is one of the kubeconfig, by default its current one.
    ClusterError when the configuration cannot be used. Nothing is sent yet.
    """
    source = _source(kubeconfig)
    # Imported late: it takes a quarter of a second, and most commands need no cluster.
    aio: Any = import_module("kubernetes.aio")
    configuration = aio.client.Configuration()

    async def load() -> None:
        if source is None:
            aio.config.load_incluster_config(client_configuration=configuration)
        else:
            await aio.config.load_kube_config(
                config_file=str(source), context=context, client_configuration=configuration, persist_config=False
            )

    try:
        await load()
        api = aio.client.ApiClient(configuration=configuration)
    except (aio.config.ConfigException, *UNUSABLE) as error:
        raise ClusterError(f"cannot use {source or 'the service account'}: {_words(error)}") from None
    return Client(api, configuration.host, load)


def _source(kubeconfig: Path | None) -> Path | None:
    """The kubeconfig file to use, None for the ServiceAccount of the pod; ClusterError for one that cannot be read."""
    named = str(kubeconfig) if kubeconfig is not None else os.environ.get("KUBECONFIG", "")
    if not named and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    source = Path(named or DEFAULT_KUBECONFIG).expanduser()
    if os.pathsep not in named:  # $KUBECONFIG may name several files
        try:
            source.read_bytes()
        except OSError as error:
            raise ClusterError(f"cannot read the kubeconfig {source}: {error.strerror}") from None
    return source


def _json(data: bytes) -> dict[str, Any]:
    with suppress(msgspec.DecodeError):
        answer = msgspec.json.decode(data)
        if isinstance(answer, dict):
            return answer
    return {}


def _words(error: BaseException) -> str:
    """What happened, on one line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate does not verify"
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "that is no URL"
    if isinstance(error, TypeError | AttributeError | LookupError):
        return "it is not a complete kubeconfig"
    if type(error) is aiohttp.ClientConnectorError and error.errno:
        return os.strerror(error.errno)
    return " ".join((str(error) or type(error).__name__).split())
