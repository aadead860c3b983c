"""Policy ConfigMaps of one namespace, in force as soon as they are seen; a broken one does no harm.

The last good document of each is kept in the ConfigMap `mpijob-webhook-last-good` beside them, so that it outlives a
restart. All replicas write the same there, so none of them needs to lead.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from webhook import PROGRAM
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get
from webhook.client.store import Kind, by_name
from webhook.client.watch import Watch
from webhook.policy import store
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL, REMEMBERED, Loaded, PolicySource
from webhook.server.events import MAX_MESSAGE, event

# Seconds until a write that failed is tried again.
RETRY = 30.0


class PolicyWatch:
    """Turns the records of `watch` into a PolicySet for `apply`, again whenever one changes.

    `base` are layers that come from elsewhere (a file). `apply` gets the policies, and the state of each ConfigMap.
    """

    def __init__(
        self,
        *,
        watch: Watch[str, PolicySource],
        api: Client,
        namespace: str,
        apply: Callable[[PolicySet, Loaded], None],
        log: Any,
        base: tuple[Layer, ...] = (),
    ) -> None:
        self._watch = watch
        self._api = api
        self._namespace = namespace
        self._apply = apply
        self._log = log
        self._base = base
        self._changed = asyncio.Event()
        self._loaded = asyncio.Event()
        self._good: Mapping[str, str] = {}
        self._written: Mapping[str, str] | None = None  # what the ConfigMap REMEMBERED holds; None before it was read
        self._reported: dict[str, str] = {}
        watch.store.on_change(lambda *_: self._changed.set())
        watch.store.on_list(self._changed.set)

    async def loaded(self) -> None:
        """Return once the existing policies are in force, or reading them was refused."""
        await self._watch.settled()
        if self._watch.synced:
            await self._loaded.wait()

    async def run(self) -> NoReturn:
        """Load, report and remember after each change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._recall()
            outcome = self._load()
            self._loaded.set()
            if not await self._report(outcome):
                asyncio.get_running_loop().call_later(RETRY, self._changed.set)

    def _load(self) -> Loaded:
        remembered = {**(self._written or {}), **self._good}
        outcome = store.load(self._watch.store.records.values(), remembered, policy_model())
        self._good = outcome.last_good
        self._apply(PolicySet([*self._base, *outcome.layers]), outcome)
        return outcome

    async def _report(self, outcome: Loaded) -> bool:
        """Log and announce what is newly broken, remember what is good; False when some of it has to be tried again."""
        sources = self._watch.store.records
        self._reported = {name: version for name, version in self._reported.items() if name in outcome.errors}
        done = True
        for name, error in outcome.errors.items():
            source = sources.get(name)
            if source is None or self._reported.get(name) == source.version:
                continue
            state = outcome.states[name]
            self._log.warning("policy is broken", configmap=name, in_force=state, error=error[:MAX_MESSAGE])
            if await self._announce(source, error, state):
                self._reported[name] = source.version
            else:
                done = False
        return done & await self._remember(outcome.last_good)

    async def _announce(self, source: PolicySource, error: str, state: store.State) -> bool:
        in_force = "its last good document stays in force" if state == "last-good" else "nothing of it is in force"
        body = event(
            self._namespace,
            _about(source),
            reason="PolicyBroken",
            message=f"The policy is broken, {in_force}: {error}",
            kind="Warning",
            key=f"{source.uid} {source.version}",
        )
        try:
            await self._api.request("POST", f"/api/v1/namespaces/{self._namespace}/events", body)
        except ClusterError as failure:
            if not (isinstance(failure, ApiError) and failure.status == 409):  # another replica was first
                self._log.warning("event not written", configmap=source.name, reason=str(failure))
                return isinstance(failure, ApiError)  # a refusal would only be repeated
        return True

    async def _recall(self) -> None:
        """Read what earlier runs remembered, unless that has been read already."""
        if self._written is not None:
            return
        try:
            self._written = _texts(await get(self._api, f"{self._configmaps}/{REMEMBERED}") or {})
        except ClusterError as error:
            self._log.warning("last good policies not readable", reason=str(error))

    async def _remember(self, last_good: Mapping[str, str]) -> bool:
        """Store the texts unless they are stored already; False when that has to be tried again."""
        if self._written is None:
            return False
        try:
            if last_good != self._written:
                await self._write(last_good)
                self._written = last_good
        except ClusterError as error:
            self._log.warning("last good policies not remembered", reason=str(error))
            return False
        return True

    async def _write(self, texts: Mapping[str, str]) -> None:
        metadata: dict[str, Any] = {"name": REMEMBERED, "labels": {"app.kubernetes.io/name": PROGRAM}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(texts)}
        found = await get(self._api, f"{self._configmaps}/{REMEMBERED}")
        if found is None:
            await self._api.request("POST", self._configmaps, body)
        elif _texts(found) != texts:
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
            await self._api.request("PUT", f"{self._configmaps}/{REMEMBERED}", body)

    @property
    def _configmaps(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/configmaps"


def _texts(configmap: Mapping[str, Any]) -> dict[str, str]:
    data = configmap.get("data")
    return {str(name): str(text) for name, text in data.items()} if isinstance(data, dict) else {}


def _about(source: PolicySource) -> dict[str, str]:
    """The ConfigMap, as an Event refers to it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": source.name,
        "uid": source.uid,
        "resourceVersion": source.version,
    }


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


_configmaps = msgspec.json.Decoder(_ConfigMap)


def _policy(data: msgspec.Raw) -> PolicySource:
    configmap = _configmaps.decode(data)
    metadata = configmap.metadata
    return PolicySource(metadata.name, metadata.uid, metadata.resource_version, (configmap.data or {}).get(KEY))


def policies(namespace: str) -> Kind[str, PolicySource]:
    """The policy ConfigMaps of a namespace."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return Kind("policies", path, key=by_name, project=_policy, label_selector=f"{LABEL}=true")
