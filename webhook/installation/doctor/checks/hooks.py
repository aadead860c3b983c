"""Checks of the webhook configurations: content, order, and whether the API server reaches the service."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.client.objects import KubernetesObject
from webhook.installation import registration
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import (
    AGAIN,
    KUEUE_HOOK,
    Facts,
    arguments,
    configuration,
    hooks,
)
from webhook.installation.doctor.unread import Unread
from webhook.installation.registration import DOMAIN

CONFIGURATION_MISSING: Final = DiagnosisKind("configuration-missing", Severity.PROBLEM)
CONFIGURATION_RENAMED: Final = DiagnosisKind("configuration-renamed", Severity.PROBLEM)
HOOK_MISSING: Final = DiagnosisKind("hook-missing", Severity.PROBLEM)
HOOK_UNKNOWN: Final = DiagnosisKind("hook-unknown", Severity.WARNING)
HOOK_ELSEWHERE: Final = DiagnosisKind("hook-elsewhere", Severity.PROBLEM)
HOOK_RULES: Final = DiagnosisKind("hook-rules", Severity.PROBLEM)
HOOK_FAILS_OPEN: Final = DiagnosisKind("hook-fails-open", Severity.WARNING)
HOOK_FAILS_CLOSED: Final = DiagnosisKind("hook-fails-closed", Severity.WARNING)
HOOK_ALTERED: Final = DiagnosisKind("hook-altered", Severity.WARNING)

# The API server's defaults for fields of a hook.
DEFAULTS: Final[Mapping[str, Any]] = {"namespaceSelector": {}, "objectSelector": {}, "matchConditions": []}
WITHOUT: Final = {
    f"mutate.{registration.DOMAIN}": "nothing is injected into jobs",
    f"ssh-keys.{registration.DOMAIN}": "jobs keep the SSH keys of the operator",
    f"validate.{registration.DOMAIN}": "jobs are not checked",
    f"policy.{registration.DOMAIN}": "broken policies are not rejected",
    f"policy-removal.{registration.DOMAIN}": "the impact of removing a policy is not reported",
}
CHECKED_ELSEWHERE: Final = {"rules", "failurePolicy", "clientConfig", "name"}


def configurations(facts: Facts) -> Iterator[Diagnosis]:
    required = registration.configurations(
        registration.by_service(facts.location.namespace, facts.location.service),
        labels={},
        policy_namespace=facts.location.namespace,
        options=arguments(facts.deployment).keys(),
    )
    total = 0
    for expected, stored in zip(required, (facts.mutating, facts.validating), strict=True):
        if isinstance(stored, Unread):
            yield not_known(f"the {expected['kind']}", stored.reason)
            continue
        actual = configuration(stored)
        if actual is None:
            yield missing(expected, fix=f"when a replica is ready, add the component hooks to your overlay: {AGAIN}")
            continue
        total += len(hooks(actual))
        yield from _about(expected["kind"], actual)
        yield from _hooks(expected, actual)
    yield ok(f"{total} hooks, as this version installs them")


def missing(expected: KubernetesObject, *, fix: str) -> Diagnosis:
    without = " and ".join(map(_without, hooks(expected)))
    return CONFIGURATION_MISSING(f"there is no {expected['kind']}: {without}", fix=fix)


def _without(hook: KubernetesObject) -> str:
    return WITHOUT.get(hook["name"]) or f"{hook['rules'][0]['resources'][0]} are not checked"


def _about(kind: str, actual: KubernetesObject) -> Iterator[Diagnosis]:
    name = actual["metadata"]["name"]
    if name != registration.NAME:
        yield CONFIGURATION_RENAMED(
            f"the {kind} has the name {name}: the service updates only the caBundles of {registration.NAME}",
            fix=f"kubectl delete {kind} {name}; then apply the manifests without renaming it",
        )


def _hooks(expected: KubernetesObject, actual: KubernetesObject) -> Iterator[Diagnosis]:
    by_name = {hook["name"]: hook for hook in hooks(actual)}
    for hook in hooks(expected):
        name = hook["name"]
        if name not in by_name:
            yield HOOK_MISSING(f"the hook {name} is missing: {_without(hook)}", fix=AGAIN)
        else:
            yield from _hook(hook, by_name[name])
    for name in by_name.keys() - {hook["name"] for hook in hooks(expected)}:
        text = f"the hook {name} does not belong to this version"
        yield HOOK_UNKNOWN(text, fix=f"if you did not add it, it belongs to a different version: {AGAIN}")


def _hook(expected: KubernetesObject, actual: KubernetesObject) -> Iterator[Diagnosis]:
    name = expected["name"]
    target, called = expected["clientConfig"]["service"], actual["clientConfig"].get("service") or {}
    if any(target[key] != called.get(key) for key in ("namespace", "name", "path")):
        where = actual["clientConfig"].get("url") or "{namespace}/{name}{path}".format(**{"path": "", **called})
        service = f"{target['namespace']}/{target['name']}{target['path']}"
        yield HOOK_ELSEWHERE(f"the hook {name} calls {where}, not the Service {service}", fix=AGAIN)
    if _rules(expected) != _rules(actual):
        text = f"the hook {name} has different rules: it gets too few or too many objects"
        yield HOOK_RULES(text, fix=AGAIN)
    yield from _failure(expected, actual)
    altered = [
        field
        for field, value in {**DEFAULTS, **expected}.items()
        if field not in CHECKED_ELSEWHERE and (actual.get(field) or DEFAULTS.get(field)) != value
    ]
    if altered:
        short = {field for field in altered if isinstance(expected.get(field), str | int)}
        words = [f"{field} is not {expected[field]}" if field in short else field for field in altered]
        yield HOOK_ALTERED(
            f"the hook {name} differs from the manifests: {', '.join(words)}", fix=f"if unwanted: {AGAIN}"
        )


def _failure(expected: KubernetesObject, actual: KubernetesObject) -> Iterator[Diagnosis]:
    name, policy = expected["name"], actual["failurePolicy"]
    if policy == expected["failurePolicy"]:
        return
    if policy == "Ignore":
        text = f"the hook {name} has failurePolicy Ignore: while no replica answers, {_without(expected)}"
        yield HOOK_FAILS_OPEN(text, fix=f"fine during the roll-out or an emergency; else {AGAIN}")
    else:
        text = f"the hook {name} has failurePolicy Fail: while no replica answers, no job is stored"
        yield HOOK_FAILS_CLOSED(text, fix=AGAIN)


def _rules(hook: KubernetesObject) -> list[KubernetesObject]:
    return sorted(
        (
            {key: sorted(value) if isinstance(value, list) else value for key, value in rule.items()}
            for rule in hook.get("rules") or ()
        ),
        key=str,
    )


CONFIGURATION_ORDER: Final = DiagnosisKind("configuration-order", Severity.PROBLEM)


def order(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.mutating, Unread):
        yield not_known("the order of the webhooks", facts.mutating.reason)
        return
    yield from after_kueue(facts.mutating)
    names = [f"before {name}" for name, _ in _kueue(facts.mutating)]
    yield ok(f"called {' and '.join(names)}" if names else "Kueue is not installed")


def after_kueue(mutating: Sequence[KubernetesObject]) -> Iterator[Diagnosis]:
    """Reports a hook of Kueue that is called only before the hooks of this service, and not again afterwards."""
    ours = configuration(mutating)
    if ours is None:
        return
    for name, policy in _kueue(mutating):
        if ours["metadata"]["name"] > name and policy != "IfNeeded":
            yield CONFIGURATION_ORDER(
                f"{ours['metadata']['name']} is called after {name}: Kueue does not get the injected queue",
                fix="install the configuration under the name of the manifests, or set Kueue's Helm value "
                "mutatingWebhook.reinvocationPolicy to IfNeeded",
            )


def _kueue(mutating: Sequence[KubernetesObject]) -> Iterator[tuple[str, str]]:
    """(name of the configuration, reinvocationPolicy) of Kueue's hook for MPIJobs."""
    for candidate in mutating:
        for hook in hooks(candidate):
            if hook["name"] == KUEUE_HOOK:
                yield candidate["metadata"]["name"], hook.get("reinvocationPolicy") or "Never"


PROBE_FAILED: Final = DiagnosisKind("probe-failed", Severity.PROBLEM)
PROBE_UNKNOWN: Final = DiagnosisKind("probe-unknown", Severity.UNKNOWN)
HOOK: Final = f"validate.{DOMAIN}"


def probe(facts: Facts) -> Iterator[Diagnosis]:
    if facts.probe is None:
        return
    rejection, where = facts.probe.rejection, f"the dry run in {facts.probe.namespace}"
    closed = _closed(facts)
    if f'"{HOOK}" denied' in rejection or (not rejection and closed):
        yield ok(f"the API server reached the service ({where}; nothing was stored)")
    elif "failed calling webhook" in rejection and DOMAIN in rejection:
        fix = "see the findings on certificates and replicas; a NetworkPolicy or a firewall may block the API server"
        yield PROBE_FAILED(f"the API server does not reach the service: {rejection}", fix=fix)
    elif rejection:
        fix = "name a namespace in which you may create MPIJobs: kubectl auth can-i create mpijobs -n NAMESPACE"
        yield PROBE_UNKNOWN(f"{where} is inconclusive: {rejection}", fix=fix)
    else:
        fix = "see the findings on the webhook configurations"
        yield PROBE_UNKNOWN(f"{where} was accepted, but it would also be accepted without the service", fix=fix)


def _closed(facts: Facts) -> bool:
    """Whether the API server rejects jobs while the service does not answer."""
    ours = None if isinstance(facts.validating, Unread) else configuration(facts.validating)
    return any(hook["name"] == HOOK and hook["failurePolicy"] == "Fail" for hook in hooks(ours or {}))
