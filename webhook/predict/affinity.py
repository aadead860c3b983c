"""Required pod affinity and anti-affinity that no cluster can satisfy.

Reads only terms that select pods of the job's namespace by labels, without expressions.
"""

from collections.abc import Iterator, Mapping

from webhook.api.mpijob import WORKER, MPIJob
from webhook.api.pod import Affinity, PodAffinity, PodAffinityTerm

_LABELS = "training.kubeflow.org/"


def contradictions(job: MPIJob) -> Iterator[tuple[str, str, str]]:
    """(field, fault, fix) for each role."""
    specs = {role: replica.template.spec for role, _, replica in job.replicas}
    affinities = {role: (spec and spec.affinity) or Affinity() for role, spec in specs.items()}
    if not any(affinity.pod_affinity or affinity.pod_anti_affinity for affinity in affinities.values()):
        return
    labels = {
        role: replica.template.labels
        | {f"{_LABELS}job-name": job.metadata.name or "", f"{_LABELS}job-role": role.lower()}
        for role, _, replica in job.replicas
    }
    apart = {
        (role, other): {
            term.topology_key for term in _required(affinity.pod_anti_affinity) if _selects(term, labels[other])
        }
        for role, affinity in affinities.items()
        for other in labels
        if role != other or (role == WORKER and job.workers > 1)
    }
    for role, path, replica in job.replicas:
        field = f"{path}.template.spec.affinity"
        for term in _required(affinities[role].pod_affinity):
            others = [other for other in labels if _selects(term, labels[other])]
            if not others and _selects(term, job.labels):
                fault = "selects no pod of the job, but a label of the job itself"
                yield f"{field}.podAffinity", fault, "If the job's pods are meant, give them the label."
            pairs = [apart.get((role, other), set()) | apart.get((other, role), set()) for other in others]
            if pairs and all(term.topology_key in keys for keys in pairs):
                fault = f"requires the {term.topology_key} that a podAntiAffinity forbids"
                yield f"{field}.podAffinity", fault, "Remove one of the two."
        for key in apart.get((role, role), set()) & replica.template.node_selector.keys():
            fault = f"allows one worker for each {key}, and nodeSelector allows one {key}"
            yield f"{field}.podAntiAffinity", fault, "Remove the nodeSelector."


def _required(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    terms = (affinity or PodAffinity()).required_during_scheduling_ignored_during_execution or ()
    return [
        term
        for term in terms
        if not (term.namespaces or term.match_label_keys or term.mismatch_label_keys)
        and term.namespace_selector is None
    ]


def _selects(term: PodAffinityTerm, labels: Mapping[str, str]) -> bool:
    selector = term.label_selector
    if selector is None or not selector.match_labels or selector.match_expressions:
        return False
    return selector.match_labels.items() <= labels.items()
