"""Compares the service's Pod Security messages, word for word, with the Pod Security admission of the API server.

Pods that just pass or just fail a check are created with a server-side dry run in namespaces of every level and
version. The API server's error shows the result of "enforce", a header of its reply the result of "warn", and its audit
log the result of "audit". MPIJOB_POD_SECURITY_PODS sets how many pods are tried.
"""

import asyncio
import itertools
import json
import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.pod_security.edges import all_containers
from tests.support.pod_security.pods import compliant_pod, pod
from tests.support.rare import rare
from webhook.predict.pod_security import LATEST, Level, Version, evaluate, labels, messages
from webhook.predict.pod_security.checks import checks
from webhook.predict.pod_security.pod import convert

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
APISERVER_FLAGS = ["--disable-admission-plugins=PodSecurity"]

PODS = int(os.environ.get("MPIJOB_POD_SECURITY_PODS", "1500"))
VERSIONS = [*map(Version, range(38)), Version(99), LATEST]

POLICIES = (
    "warn=baseline warn-version={version}",
    "warn=restricted warn-version={version}",
    "enforce=baseline enforce-version={version} warn=restricted warn-version={version}",
    "enforce=restricted enforce-version={version}",
)
READABLE = ("v1.20", "v1.0", f"v1.{2**63 - 1}")
UNREADABLE = ("v1.01", "v2.0", "1.20", "v1", "v1.x", "", f"v1.{2**63}")
ODD_LABELS = (
    "",
    *(
        f"{mode}={level}"
        for mode in labels.NamespaceLevels._fields
        for level in ("baseline", "restricted", "Baseline", "no", "")
    ),
    *(f"enforce=baseline enforce-version={version}" for version in (*READABLE, *UNREADABLE)),
    "enforce=oops enforce-version=v1.20",
    "enforce=oops enforce-version=oops audit=oops audit-version=oops warn=oops warn-version=oops",
    "enforce=baseline enforce-version=v1.20 warn-version=v1.10",
    "enforce=baseline enforce-version=v1.20 warn=privileged",
    "enforce=baseline enforce-version=v1.20 warn=oops",
    "enforce-version=v1.10 audit-version=v1.11 warn-version=v1.12",
    "audit=restricted audit-version=v1.7 warn=baseline warn-version=v1.34",
    "audit=baseline audit-version=oops warn=restricted warn-version=oops",
)


def prefixed(short: str) -> dict[str, str]:
    return {labels.PREFIX + key: value for key, value in (pair.split("=") for pair in short.split())}


NAMESPACES = {
    f"{str(version).replace('.', '-')}-{index}": prefixed(policy.format(version=version))
    for version, (index, policy) in itertools.product(VERSIONS, enumerate(POLICIES))
}
ODD_NAMESPACES = {f"odd-{index}": prefixed(short) for index, short in enumerate(ODD_LABELS)}
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "resources": [{"group": "", "resources": ["pods"]}], "namespaces": [*ODD_NAMESPACES]},
        {"level": "None"},
    ],
}


@pytest.fixture(scope="module", autouse=True)
def namespaces(cluster: Cluster) -> None:
    """Creates all namespaces while Pod Security is disabled, then enables it.

    Pod Security would reject namespaces with invalid labels.
    """
    asyncio.run(make_namespaces(cluster))
    (audit_policy := cluster.dir / "pod-audit-policy.yaml").write_text(json.dumps(AUDIT_POLICY))
    restart(cluster, f"--audit-policy-file={audit_policy}")


def restart(cluster: Cluster, *flags: str) -> None:
    cluster.stop_apiserver()
    cluster._apiserver_flags = flags
    cluster.start_apiserver()


async def make_namespaces(cluster: Cluster) -> None:
    async with client(cluster) as api:
        await asyncio.gather(*(api.make_namespace(*item) for item in (NAMESPACES | ODD_NAMESPACES).items()))


def expected(policy: labels.NamespaceLevels, made: Any, newest: Version) -> tuple[str, str]:
    """(error, warning) of the service. The warning is empty if there is an error."""
    template = convert(made)
    if denied := evaluate(*policy.enforce, template, newest=newest):
        return f'pods "p" is forbidden: {messages.denial(policy.enforce, denied)}', ""
    warned = evaluate(*policy.warn, template, newest=newest)
    return "", messages.warning(policy.warn, warned) if warned else ""


def verdict(status: int, reply: Any, warnings: list[str]) -> tuple[str, str] | None:
    """(error, warning) of the API server. None if its validation rejected the pod before Pod Security saw the pod."""
    if status == 422:
        return None
    assert status in (200, 201, 403), reply
    return (reply["message"] if status == 403 else ""), "".join(warnings)


Seen = tuple[Level, str, int | None]  # level, check, and the version of its last change

# The API server's validation rejects "Unmasked" without `hostUsers: false`. With it, Pod Security allows "Unmasked"
# since v1.35.
UNREACHABLE: set[Seen] = {(Level.BASELINE, "procMount", 35)}


class Comparison:
    def __init__(self, newest: Version) -> None:
        self.newest = newest
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.seen: set[Seen] = set()

    def add(self, namespace: str, made: Any, theirs: tuple[str, str] | None) -> None:
        if theirs is None:
            self.counts["refused by validation"] += 1
            return
        policy, _ = labels.read(NAMESPACES[namespace])
        ours = expected(policy, made, self.newest)
        self.counts["error" if ours[0] else "warning" if ours[1] else "allowed"] += 1
        level, version = policy.enforce if ours[0] else policy.warn
        for result in evaluate(level, version, convert(made), newest=self.newest):
            revision = checks(level, min(version, self.newest))[result.check].revision(min(version, self.newest))
            self.seen.add((level, result.check, revision))
        if ours != theirs:
            self.differences.append(f"{namespace}\nours:   {ours}\ntheirs: {theirs}\n{json.dumps(made)}")

    def check(self, *kinds: str) -> None:
        """Assert that there is no difference, and that each of `kinds` occurred often enough."""
        assert not self.differences, f"{len(self.differences)} differ:\n" + "\n\n".join(self.differences[:5])
        share = {kind: self.counts[kind] / self.counts.total() for kind in (*kinds, "refused by validation")}
        assert share.pop("refused by validation") < 0.05
        assert min(share.values()) > 0.05


async def compare(api: Client, *, pods: int, seed: int, namespaces: list[str]) -> Comparison:
    comparison = Comparison(await api.newest())
    rng = Random(seed)
    work = [(rng.choice(namespaces), pod(rng)) for _ in range(pods)]

    async def create(item: tuple[str, dict[str, Any]]) -> None:
        namespace, made = item
        reply = await api.send("POST", f"/api/v1/namespaces/{namespace}/pods", made, **DRY_RUN)
        comparison.add(namespace, made, verdict(*reply))

    await at_a_time(work, create)
    return comparison


async def test_verdicts_on_new_pods_match_the_api_server(cluster: Cluster) -> None:
    """The messages are compared byte for byte."""
    async with client(cluster) as api:
        comparison = await compare(api, pods=PODS, seed=1, namespaces=[*NAMESPACES])
        reachable = {
            (level, check.id, check.revision(Version(minor)))
            for level in (Level.BASELINE, Level.RESTRICTED)
            for minor in range(comparison.newest.minor + 1)
            for check in checks(level, Version(minor)).values()
        }
    comparison.check("error", "warning", "allowed")
    assert comparison.seen == reachable - UNREACHABLE, "each revision of each check has rejected a pod"


async def test_verdicts_on_ephemeral_containers_match_the_api_server(cluster: Cluster) -> None:
    """Only an update of an existing pod can add an ephemeral container."""
    namespaces = [name for name in NAMESPACES if name.endswith(("-0", "-1"))]
    async with client(cluster) as api:
        comparison = Comparison(await api.newest())

        async def debug(namespace: str) -> None:
            rng = Random(namespace)
            path = f"/api/v1/namespaces/{namespace}/pods"
            made = compliant_pod(rng)
            made["metadata"]["name"] = "debugged"
            status, stored, _ = await api.send("POST", path, made)
            assert status == 201, stored
            for _ in range(6):
                contexts = [container.get("securityContext", {}) for container in all_containers(pod(rng)["spec"])]
                for context in contexts:
                    context.pop("procMount", None)  # a value other than the default needs `hostUsers: false`
                    context.pop("windowsOptions", None)  # hostProcess needs `hostNetwork: true`
                added = [{"name": f"d{i}", "image": "x", "securityContext": it} for i, it in enumerate(contexts)]
                made = stored | {"spec": stored["spec"] | {"ephemeralContainers": added}}
                reply = await api.send("PUT", f"{path}/debugged/ephemeralcontainers", made, **DRY_RUN)
                comparison.add(namespace, made, verdict(*reply))

        await asyncio.gather(*(debug(namespace) for namespace in namespaces))
    comparison.check("warning", "allowed")


HOSTILE = {"metadata": {"name": "p"}, "spec": {"hostPID": True, "containers": [{"name": "a", "image": "x"}]}}


async def test_meaning_of_labels_matches_the_api_server(cluster: Cluster) -> None:
    """The service and the API server read the same levels from the labels, and find the same errors in them."""
    async with client(cluster) as api:
        newest = await api.newest()
        for namespace, given in ODD_NAMESPACES.items():
            policy, errors = labels.read(given)
            reply = await api.send("POST", f"/api/v1/namespaces/{namespace}/pods", HOSTILE, **DRY_RUN)
            assert verdict(*reply) == expected(policy, HOSTILE, newest), given

            new = {"metadata": {"name": "new", "labels": given}}
            status, refusal, _ = await api.send("POST", "/api/v1/namespaces", new, **DRY_RUN)
            texts = [str(error) for error in errors]
            joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            answer = (422, f'Namespace "new" is invalid: {joined}') if errors else (201, None)
            assert (status, refusal.get("message")) == answer

    log = [json.loads(line) for line in (cluster.dir / "audit.log").read_text().splitlines()]
    audited = {event["objectRef"]["namespace"]: event["annotations"] for event in log if "annotations" in event}
    for namespace, given in ODD_NAMESPACES.items():
        policy, errors = labels.read(given)
        results = evaluate(*policy.audit, convert(HOSTILE), newest=newest)
        violations = messages.warning(policy.audit, results) if results else None
        assert audited[namespace].get(labels.PREFIX + "audit-violations") == violations, given
        assert (labels.PREFIX + "error" in audited[namespace]) == bool(errors), given
        # the API server reads versions only if the levels are valid
        if errors or {mode.level for mode in policy} != {Level.PRIVILEGED}:
            assert audited[namespace][labels.PREFIX + "enforce-policy"] == str(policy.enforce), given


@rare
async def test_unknown_versions_mean_the_version_of_the_api_server(cluster: Cluster) -> None:
    """`latest` and unknown versions mean the API server's version. This test is last: it restarts the API server."""
    restart(cluster, "--emulated-version=1.33")
    newer = [name for name in NAMESPACES if name.startswith(("v1-33", "v1-34", "v1-35", "v1-36", "v1-99", "latest"))]
    async with client(cluster) as api:
        assert await api.newest() == Version(33)
        comparison = await compare(api, pods=600, seed=3, namespaces=newer)
    comparison.check("error", "warning", "allowed")
