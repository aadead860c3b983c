"""Plug-ins: whether those of the service are here too, and whether they work."""

from collections.abc import Iterator
from typing import Final

from webhook import PROGRAM
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts, variables
from webhook.installation.doctor.unread import Unread
from webhook.plugins.loading import VARIABLE, normalised

PLUGIN_BROKEN: Final = DiagnosisKind("plugin-broken", Severity.WARNING)
PLUGIN_ELSEWHERE: Final = DiagnosisKind("plugin-elsewhere", Severity.WARNING)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say which plug-ins are broken here, and which the service has and this command has not."""
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
