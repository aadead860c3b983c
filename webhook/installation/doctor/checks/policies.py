"""The input of administrators and users: policies, plug-ins, and annotations of jobs."""

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
from webhook.policy.exemptions import ASKED

POLICY_BROKEN: Final = DiagnosisKind("policy-broken", Severity.PROBLEM)
POLICY_UNLABELLED: Final = DiagnosisKind("policy-unlabelled", Severity.WARNING)
POLICY_MISPLACED: Final = DiagnosisKind("policy-misplaced", Severity.WARNING)
POLICY_ELSEWHERE: Final = DiagnosisKind("policy-elsewhere", Severity.WARNING)


def policies(facts: Facts) -> Iterator[Diagnosis]:
    """Report broken policies, and what is in force instead."""
    if isinstance(facts.policies, Unread):
        yield not_known("the policies", facts.policies.reason)
        return
    namespace = facts.location.namespace
    for name, (state, error) in facts.policies.broken.items():
        instead = "its last good document is in force"
        if state != "last-good":
            instead = "nothing of it is in force, and replicas that start do not become ready"
        yield POLICY_BROKEN(
            f'policy "{name}" is broken, {instead}: {"; ".join(error.splitlines())}',
            fix=f"kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy validate -",
        )
    for name in facts.policies.unlabelled:
        yield POLICY_UNLABELLED(
            f'ConfigMap "{name}" holds a policy, and nothing of it is in force: it has no label {store.LABEL}: "true"',
            fix=f"kubectl -n {namespace} label configmap {name} --overwrite {store.LABEL}=true; before, see what that "
            f"changes: kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy replay --policy -",
        )
    for name, key in facts.policies.misplaced.items():
        yield POLICY_MISPLACED(
            f'ConfigMap "{name}" holds a policy under {key}, and nothing of it is in force: that takes the key '
            f'{store.KEY} and the label {store.LABEL}: "true"',
            fix=f"apply it again, with both; {PROGRAM} policy validate FILE says whether it has them",
        )
    if isinstance(facts.policies.elsewhere, Unread):
        yield not_known("whether there are policies in other namespaces", facts.policies.elsewhere.reason)
        return
    for place, name in facts.policies.elsewhere:
        yield POLICY_ELSEWHERE(
            f'policy "{name}" is in namespace {place}, and nothing of it is in force: only those in {namespace} are',
            fix=f"apply it with -n {namespace}; for jobs of {place} alone, `namespaces` in the document selects them. "
            f"Then kubectl -n {place} delete configmap {name}",
        )
    yield ok(f"{facts.policies.count} in force" if facts.policies.count else "none: the built-in defaults hold")


PLUGIN_BROKEN: Final = DiagnosisKind("plugin-broken", Severity.WARNING)
PLUGIN_ELSEWHERE: Final = DiagnosisKind("plugin-elsewhere", Severity.WARNING)


def plugins(facts: Facts) -> Iterator[Diagnosis]:
    """Report plug-ins that are broken here, and plug-ins of the service that this command lacks."""
    for plugin in facts.plugins:
        if plugin.faults:
            yield PLUGIN_BROKEN(
                f"the plug-in {plugin.name} is broken here: {'; '.join(plugin.faults)}",
                fix=f"{PROGRAM} plugins, here and in a replica: {_in_a_replica(facts)}",
            )
    if isinstance(facts.deployment, Unread):
        yield not_known("which plug-ins the service has", facts.deployment.reason)
        return
    wanted = variables(facts.deployment).get(VARIABLE, "")
    here = {plugin.name for plugin in facts.plugins}
    missing = [name for name in map(normalised, wanted.split(",")) if name and name not in here]
    if missing:
        yield PLUGIN_ELSEWHERE(
            f"the service has plug-ins that this command does not know: {', '.join(missing)}; policies that name their"
            " rules look broken from here",
            fix=f"run it where they are: {_in_a_replica(facts)}",
        )
    yield ok(f"{len(facts.plugins)} in force" if facts.plugins else "none")


def _in_a_replica(facts: Facts) -> str:
    return f"kubectl -n {facts.location.namespace} exec deployment/{PROGRAM} -- {PROGRAM} plugins"


ASKED_IN_VAIN: Final = DiagnosisKind("asked-in-vain", Severity.WARNING)


def annotations(facts: Facts) -> Iterator[Diagnosis]:
    """Report jobs whose annotations have no effect."""
    if isinstance(facts.asked_in_vain, Unread):
        yield not_known("which annotations of jobs have no effect", facts.asked_in_vain.reason)
        return
    more = len(facts.asked_in_vain) - MAX_LINES_PER_CHECK
    for number, mistake in enumerate(facts.asked_in_vain[:MAX_LINES_PER_CHECK], start=1):
        kind, known = (
            ("rule", [*rules.REGISTRY]) if mistake.annotation == ASKED else ("injection", [*injections.REGISTRY])
        )
        names = ", ".join(_named(each, known) for each in mistake.unknown[:MAX_LINES_PER_CHECK])
        others = f"; and {more} more like this" if more > 0 and number == MAX_LINES_PER_CHECK else ""
        yield ASKED_IN_VAIN(
            f"{mistake.annotation} of MPIJob {mistake.job} has what is no {kind}: {names}{others}",
            fix=f"correct it in the file of the job; `{PROGRAM} rules` lists all rules and injections",
        )
    yield ok("the annotations of all jobs name rules and injections that there are")


def _named(unknown: str, known: Iterable[str]) -> str:
    near = closest_name(unknown, known)
    return f'"{unknown[:63]}"' + (f" (did you mean {near}?)" if near else "")
