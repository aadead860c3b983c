"""Custom rules in a verdict: what they read, and their outcomes."""

from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.admission import ratchet
from webhook.api.mpijob import MPIJob
from webhook.api.review import AdmissionRequest
from webhook.cel import evaluation
from webhook.cluster.resources.namespaces import LONGEST_ANNOTATION, NAMESPACES, Namespace
from webhook.kit.context import Context, Memo
from webhook.kit.own_rules import Outcome, Variables, full_id
from webhook.policy.in_force import Policy
from webhook.policy.own_rules import OwnRule
from webhook.predict.job_facts import job_facts

_RESOURCE: Final = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}


def evaluated(request: AdmissionRequest, job: MPIJob, ctx: Context, policy: Policy) -> Context:
    """`ctx` with the outcome of each own rule."""
    if not policy.own_rules:
        return ctx
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    known = isinstance(namespace, Namespace)
    outcomes: dict[str, Outcome] = {}
    rules: list[OwnRule] = []
    for rule in policy.own_rules:
        if (rule.needs_namespace and not known) or (rule.needs_user and not request.user_info.username):
            outcomes[rule.id] = Outcome()  # what is unknown never denies
        else:
            rules.append(rule)
    if rules:
        variables = Variables(
            object=request.object,
            old_object=request.old_object,
            request=_request(request, ctx),
            namespace_object=_namespace(namespace) if isinstance(namespace, Namespace) else None,
            params=policy.document.params,
            job=job_facts(job, ctx),
            old_job=None if ctx.old is None else job_facts(ctx.old, ratchet.judging_stored(ctx, job, ctx.old)),
        )
        found = evaluation.evaluate([rule.asked for rule in rules], variables)
        outcomes.update(zip((rule.id for rule in rules), found, strict=True))
    return structs.replace(ctx, own_rules=outcomes)


def of_stored(ctx: Context, document: msgspec.Raw) -> Context:
    """The context of the stored job, with the own rules that it breaks too."""
    standing = {own_id: outcome for own_id, outcome in ctx.own_rules.items() if outcome.standing}
    return structs.replace(ctx, old=None, document=document, own_rules=standing, memo=Memo())


def faults(ctx: Context) -> dict[str, str]:
    """Why own rules have no outcome."""
    return {full_id(own_id): outcome.fault for own_id, outcome in ctx.own_rules.items() if outcome.fault}


def _namespace(namespace: Namespace) -> dict[str, Any]:
    whole = {key: value for key, value in namespace.annotations.items() if len(value) <= LONGEST_ANNOTATION}
    return {"metadata": {"name": namespace.name, "labels": namespace.labels, "annotations": whole}}


def _request(request: AdmissionRequest, ctx: Context) -> dict[str, Any]:
    """As a ValidatingAdmissionPolicy sees it: what is empty is not there."""
    user = request.user_info
    kind = {"group": request.kind.group, "version": request.kind.version, "kind": request.kind.kind}
    found = {
        "kind": kind,
        "resource": _RESOURCE,
        "requestKind": kind,
        "requestResource": _RESOURCE,
        "name": request.name,
        "namespace": ctx.namespace,
        "operation": request.operation,
        "userInfo": {
            key: value
            for key, value in (
                ("username", user.username),
                ("uid", user.uid),
                ("groups", user.groups),
                ("extra", user.extra),
            )
            if value
        },
    }
    return {**{key: value for key, value in found.items() if value != ""}, "dryRun": bool(request.dry_run)}
