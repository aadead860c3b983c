"""Checks of policies, plug-ins, and annotations of jobs."""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook import PROGRAM, injections, rules
from webhook.api.names import closest_name
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts, variables
from webhook.installation.doctor.unread import Unread
from webhook.installation.limits import MAX_LINES_PER_CHECK
from webhook.plugins.loading import VARIABLE, normalised
from webhook.policy import store
from webhook.policy.exemptions import EXEMPT

POLICY_BROKEN: Final = DiagnosisKind("policy-broken", Severity.PROBLEM)
POLICY_UNLABELLED: Final = DiagnosisKind("policy-unlabelled", Severity.WARNING)
POLICY_MISPLACED: Final = DiagnosisKind("policy-misplaced", Severity.WARNING)
POLICY_ELSEWHERE: Final = DiagnosisKind("policy-elsewhere", Severity.WARNING)


def policies(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.policies, Unread):
        yield not_known("the policies", facts.policies.reason)
        return
    namespace = facts.location.namespace
    for name, (state, error) in facts.policies.broken.items():
        instead = "its last good document is in force"
        if state != "last-good":
            instead = "it has no effect, and replicas that start do not become ready"
        yield POLICY_BROKEN(
            f'policy "{name}" is broken, {instead}: {"; ".join(error.splitlines())}',
            fix=f"kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy validate -",
        )
    for name in facts.policies.unlabelled:
        yield POLICY_UNLABELLED(
            f'ConfigMap "{name}" has a policy without effect: it has no label {store.LABEL}: "true"',
            fix=f"kubectl -n {namespace} label configmap {name} --overwrite {store.LABEL}=true; before, check the "
            f"effect: kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy replay --policy -",
        )
    for name, key in facts.policies.misplaced.items():
        yield POLICY_MISPLACED(
            f'ConfigMap "{name}" has a policy under {key} without effect: it needs the key '
            f'{store.KEY} and the label {store.LABEL}: "true"',
            fix=f"apply it again with both; {PROGRAM} policy validate FILE checks them",
        )
    if isinstance(facts.policies.elsewhere, Unread):
        yield not_known("whether there are policies in other namespaces", facts.policies.elsewhere.reason)
        return
    for place, name in facts.policies.elsewhere:
        yield POLICY_ELSEWHERE(
            f'policy "{name}" in namespace {place} has no effect: the service reads only policies in {namespace}',
            fix=f"apply it with -n {namespace}; to apply it only to jobs of {place}, use `namespaces` in the document. "
            f"Then kubectl -n {place} delete configmap {name}",
        )
    yield ok(f"{facts.policies.count} in force" if facts.policies.count else "none: the built-in defaults apply")


PLUGIN_BROKEN: Final = DiagnosisKind("plugin-broken", Severity.WARNING)
PLUGIN_ELSEWHERE: Final = DiagnosisKind("plugin-elsewhere", Severity.WARNING)


def plugins(facts: Facts) -> Iterator[Diagnosis]:
    for plugin in facts.plugins:
        if plugin.faults:
            yield PLUGIN_BROKEN(
                f"the plug-in {plugin.name} is broken here: {'; '.join(plugin.faults)}",
                fix=f"{PROGRAM} plugins, here and in a replica: {_in_a_replica(facts)}",
            )
    if isinstance(facts.deployment, Unread):
        yield not_known("which plug-ins the service has", facts.deployment.reason)
        return
    service_plugins = variables(facts.deployment).get(VARIABLE, "")
    names = {plugin.name for plugin in facts.plugins}
    missing = [name for name in map(normalised, service_plugins.split(",")) if name and name not in names]
    if missing:
        yield PLUGIN_ELSEWHERE(
            f"the service has plug-ins that this command does not have: {', '.join(missing)}; policies with their"
            " rules look broken here",
            fix=f"run this command in a replica: {_in_a_replica(facts)}",
        )
    yield ok(f"{len(facts.plugins)} in force" if facts.plugins else "none")


def _in_a_replica(facts: Facts) -> str:
    return f"kubectl -n {facts.location.namespace} exec deployment/{PROGRAM} -- {PROGRAM} plugins"


ASKED_IN_VAIN: Final = DiagnosisKind("asked-in-vain", Severity.WARNING)


def annotations(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.unknown_names, Unread):
        yield not_known("which annotations of jobs have no effect", facts.unknown_names.reason)
        return
    more = len(facts.unknown_names) - MAX_LINES_PER_CHECK
    for number, mistake in enumerate(facts.unknown_names[:MAX_LINES_PER_CHECK], start=1):
        kind, ids = (
            ("rule", [*rules.REGISTRY]) if mistake.annotation == EXEMPT else ("injection", [*injections.REGISTRY])
        )
        names = ", ".join(_named(name, ids) for name in mistake.unknown[:MAX_LINES_PER_CHECK])
        rest = f"; and {more} more like this" if more > 0 and number == MAX_LINES_PER_CHECK else ""
        yield ASKED_IN_VAIN(
            f"{mistake.annotation} of MPIJob {mistake.job} has an unknown {kind}: {names}{rest}",
            fix=f"correct the file of the job; `{PROGRAM} rules` lists all rules and injections",
        )
    yield ok("the annotations of all jobs name existing rules and injections")


def _named(unknown: str, ids: Iterable[str]) -> str:
    near = closest_name(unknown, ids)
    return f'"{unknown[:63]}"' + (f" (did you mean {near}?)" if near else "")
