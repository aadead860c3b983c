"""Loads the policy ConfigMaps of one namespace. If a document is broken, its last good version is used.

The ConfigMap `mpijob-webhook-last-good` in the same namespace has the last good documents, so that they outlive a
restart. All replicas of the same version write the same content there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn

import msgspec

from webhook import PROGRAM, __version__
from webhook.client.access_reviews import Right, has_right
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.limits import MAX_EVENT_CHARACTERS
from webhook.client.objects import get, write_event
from webhook.client.store import Kind, by_name
from webhook.client.watch import Watch
from webhook.policy import store
from webhook.policy.document import TOO_EXPENSIVE, PolicyDocument, PolicyError, PolicyFault
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import KEY, LABEL, REMEMBERED, Loaded, PolicySource
from webhook.work_limit import TooExpensive, limited

POLICIES: Final = "policies"
# Seconds until a failed write is retried.
RETRY = 30.0
# Seconds between two checks for the right to list the policies. After DENIALS denials in a row, the right counts as
# missing. One denial is not enough: an API server that has just started denies every request.
LOOK = 5.0
DENIALS = 3


@dataclass(eq=False)
class PolicyWatch:
    """Makes a PolicySet from the records of `watch`, and passes it with the state of each ConfigMap to `apply`.

    `base` has the policies from other sources (a file). While the ConfigMaps cannot be listed, the last good documents
    of the previous run are used. If there are none and the right to list ConfigMaps is certainly missing, the defaults
    are used. Otherwise the service is not ready. The service is also not ready if this `version` can read neither the
    current text of a document nor its last good copy.
    """

    watch: Watch[str, PolicySource]
    api: Client
    namespace: str
    apply: Callable[[PolicySet, Loaded], None]
    log: Any
    base: tuple[Layer, ...] = ()
    version: str = __version__
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._cluster_version = ""
        self._unreadable = ""  # documents whose current and last good text this version cannot read
        self._instead = ""  # the policies used while ConfigMaps cannot be read
        self._changed = asyncio.Event()
        self._loaded = asyncio.Event()
        self._good: Mapping[str, str] = {}
        self._written: Mapping[str, str] | None = None  # the content of the ConfigMap REMEMBERED; None until it is read
        self._broken: dict[str, str] = {}  # for each broken policy: the version in force, and the error
        self._reported: dict[str, str] = {}
        self.watch.store.on_change(lambda *_: self._changed.set())
        self.watch.store.on_list(self._changed.set)

    async def loaded(self) -> None:
        """Return once the existing policies or their replacement are loaded."""
        await self._loaded.wait()

    @property
    def unsettled(self) -> str:
        """The reason why no policies are loaded yet; empty once policies are loaded."""
        return "" if self._loaded.is_set() else self._unreadable or self.problem

    def concerns(self) -> dict[str, str]:
        """Problems: unreadable ConfigMaps and broken policies."""
        return ({"policies-unread": self.problem} if self.problem else {}) | self._broken

    @property
    def problem(self) -> str:
        """Why the policies cannot be read, and the policies used instead; empty if they can be read."""
        if self.watch.known:
            return ""
        reason = self.watch.reason or "there is no answer yet"
        in_force = self._instead or (
            "the policies read earlier are in force" if self._loaded.is_set() else "no policies are in force"
        )
        return f"the policies in {self.namespace} cannot be read ({reason}): {in_force}"

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._begin_without_list())

    async def _begin_without_list(self) -> None:
        """Before the first list: use the last good documents, or the defaults if the right to list is missing."""
        denials = 0
        right = Right("list", "", "configmaps", self.namespace)
        while not self._loaded.is_set():
            await self.sleep(LOOK)
            if self.watch.synced or self._loaded.is_set():
                return
            await self._recall()
            try:
                denials = 0 if await has_right(self.api, right) else denials + 1
            except ClusterError:
                denials = 0
            if self._written:
                remembered = (PolicySource(name, "", "", text) for name, text in self._written.items())
                self._force(remembered, "the last good policies of the previous run are in force")
            elif denials >= DENIALS:
                self._force((), "the right to list them is missing, so the built-in defaults are in force")

    def _force(self, sources: Iterable[PolicySource], instead: str) -> None:
        outcome = store.load(sources, {}, policy_model(), _read)
        self._unreadable = _unreadable(outcome)
        if self._unreadable:
            return
        states: dict[str, store.State] = {
            name: "unusable" if state == "unusable" else "last-good" for name, state in outcome.states.items()
        }
        self._instead = instead
        self.apply(PolicySet([*self.base, *outcome.layers], self._cluster_version), replace(outcome, states=states))
        self._loaded.set()
        self.log.error("policies not read", problem=self.problem)

    async def _follow(self) -> NoReturn:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._recall()
                await self._read_cluster_version()
                outcome = self._load()
                done = await self._report(outcome)
            except BaseException:
                self._changed.set()  # the next run must not wait for another change
                raise
            if not done:
                asyncio.get_running_loop().call_later(RETRY, self._changed.set)

    async def _read_cluster_version(self) -> None:
        """Read a version such as v1.35. After a failure the previous value stays."""
        with suppress(ClusterError, KeyError, ValueError):
            minor = (await self.api.request("GET", "/version"))["minor"]
            self._cluster_version = f"v1.{int(str(minor).rstrip('+'))}"

    def _load(self) -> Loaded:
        remembered = {**(self._written or {}), **self._good}
        outcome = store.load(self.watch.store.records.values(), remembered, policy_model(), _read)
        self._good = outcome.last_good
        self._instead = ""
        self._broken = {
            f"policy-broken-{name}": f'policy "{name}" is broken, {_in_force(outcome.states[name])}: {_line(error)}'
            for name, error in outcome.errors.items()
        }
        self._unreadable = _unreadable(outcome)
        if not self._unreadable or self._loaded.is_set():
            self.apply(PolicySet([*self.base, *outcome.layers], self._cluster_version), outcome)
            self._loaded.set()
        return outcome

    async def _report(self, outcome: Loaded) -> bool:
        """Log and announce newly broken documents, and store good documents. False if a part must be retried."""
        sources = self.watch.store.records
        self._reported = {name: version for name, version in self._reported.items() if name in outcome.errors}
        done = True
        for name, error in outcome.errors.items():
            source = sources.get(name)
            if source is None or self._reported.get(name) == source.version:
                continue
            state = outcome.states[name]
            self.log.warning("policy is broken", configmap=name, in_force=state, error=error[:MAX_EVENT_CHARACTERS])
            if await self._announce(source, error, state):
                self._reported[name] = source.version
            else:
                done = False
        return done & await self._remember(outcome.last_good)

    async def _announce(self, source: PolicySource, error: str, state: store.State) -> bool:
        about = {"apiVersion": "v1", "kind": "ConfigMap", "name": source.name, "uid": source.uid}
        try:
            await write_event(
                self.api,
                self.namespace,
                about | {"resourceVersion": source.version},
                reason="PolicyBroken",
                message=f"The policy is broken, {_in_force(state)}: {error}",
                kind="Warning",
                key=f"{source.uid} {source.version}",
            )
        except ClusterError as failure:
            self.log.warning("event not written", configmap=source.name, reason=str(failure))
            return isinstance(failure, ApiError)  # the API server would reject a retry too
        return True

    async def _recall(self) -> None:
        """Read the stored documents of earlier runs, once."""
        if self._written is not None:
            return
        try:
            stored = await get(self.api, f"{self._configmaps}/{REMEMBERED}") or {}
            self._written = store.remembered_texts(_data(stored), self.version)
        except ClusterError as error:
            self.log.warning("last good policies not readable", reason=str(error))

    async def _remember(self, texts: Mapping[str, str]) -> bool:
        """Store new texts; False if the write must be retried."""
        if self._written is None:
            return False
        try:
            if texts != self._written:
                await self._write(texts)
                self._written = texts
        except ClusterError as error:
            self.log.warning("last good policies not stored", reason=str(error))
            return False
        return True

    async def _write(self, texts: Mapping[str, str]) -> None:
        metadata: dict[str, Any] = {"name": REMEMBERED, "labels": {"app.kubernetes.io/name": PROGRAM}}
        stored = await get(self.api, f"{self._configmaps}/{REMEMBERED}")
        before = _data(stored or {})
        data = store.with_remembered(before, texts, self.version)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        if stored is None:
            await self.api.request("POST", self._configmaps, body)
        elif data != before:
            metadata["resourceVersion"] = stored["metadata"]["resourceVersion"]
            await self.api.request("PUT", f"{self._configmaps}/{REMEMBERED}", body)

    @property
    def _configmaps(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"


def _read(text: str | None, model: type[PolicyDocument], maximum: int) -> PolicyDocument:
    """The document; PolicyError if it is invalid, or if reading it takes too much processor time."""
    try:
        return limited(partial(store.read, text, model, maximum))
    except TooExpensive:
        raise PolicyError(PolicyFault("", TOO_EXPENSIVE)) from None


def _in_force(state: store.State) -> str:
    return "its last good document stays in force" if state == "last-good" else "it has no effect"


def _line(error: str) -> str:
    return "; ".join(error.splitlines())[:MAX_EVENT_CHARACTERS]


def _unreadable(outcome: Loaded) -> str:
    """Policies that this version cannot read. Without them the service would admit jobs that they deny."""
    unusable = (name for name, state in outcome.states.items() if state == "unusable")
    return "; ".join(
        f'policy "{name}": this version can read neither the document nor its last good copy: '
        + _line(outcome.errors[name])
        for name in unusable
    )


def _data(configmap: Mapping[str, Any]) -> dict[str, Any]:
    data = configmap.get("data")
    return data if isinstance(data, dict) else {}


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
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return Kind(POLICIES, path, key=by_name, project=_policy, label_selector=f"{LABEL}=true")
