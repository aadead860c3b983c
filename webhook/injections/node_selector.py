"""Pods run on the nodes that the policy gives to their namespace.

Nothing is injected unless `labels` are set. Both pod templates get the labels as `nodeSelector`. If a template already
has the key, in `nodeSelector` or in the required node affinity, the user's value stays. If the policy has a different
value, a warning reports it. This injection does not keep jobs off other nodes; the rule `compliance` does.

Kueue reads the node selector too: the pods do not fit a flavor with a different value of the label.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, a_text, in_templates
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings, Labels


class Settings(InjectionSettings):
    """The nodes."""

    labels: Labels = Field({}, description="Labels that a node must have to run pods of a job.")


FORMS: Final = in_templates("spec", "nodeSelector", ITEM, holds=a_text, when=ComesBack.SAME_FILE)


@injection("node-selector", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    added: dict[str, str] = {}
    conflicting: dict[str, str] = {}
    for role, _, replica in job.replicas if settings.labels else ():
        template = replica.template
        if template.spec is None:
            continue
        present_keys = {
            *template.node_selector,
            *(requirement.key for term in template.node_terms for requirement in term.match_expressions or ()),
        }
        missing = {key: value for key, value in settings.labels.items() if key not in present_keys}
        added |= patch.add_entries((*template_path(role), "spec", "nodeSelector"), missing)
        present = settings.labels.keys() & present_keys
        conflicting |= {
            key: settings.labels[key] for key in present if not template.requires_node(key, settings.labels[key])
        }
    if added:
        yield f"added nodeSelector {_shown(added)}"
    if conflicting:
        yield Caution(f"the job's own choice of nodes stays, the policy has {_shown(conflicting)}")


def _shown(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
