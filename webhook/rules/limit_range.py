"""Containers, pods and claims stay within the LimitRanges of the namespace.

The API server stores a job whose pods break a limit, and later rejects each pod on every attempt. This rule checks the
pods that the operator will create, with the defaults of LimitRanges and of the API server: `min`, `max` and
`maxLimitRequestRatio` of containers and of pods, and `min` and `max` of the claims of `ephemeral` volumes. It also
reports pods that a default makes invalid: for example, the default limit is below the job's request.

If two LimitRanges have different defaults for a resource, the API server uses either default. A resource without a
value in the job is then not checked. Nothing is checked while the LimitRanges are unknown.
"""

from collections.abc import Iterator, Sequence

from webhook.api import quantity
from webhook.api.bounds import ANY, Bound, Fit
from webhook.api.mpijob import MPIJob
from webhook.api.quantity import Quantity
from webhook.cluster.resources.limit_ranges import CLAIM, LIMIT_RANGES
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.job_pods import job_pods
from webhook.predict.limit_ranges import AbovePod, HugePagesAlone, NoLimit, OutOfBounds, RequestAndLimit, faults
from webhook.rules import CauseReason, Degree, Violation, first_of, rule
from webhook.rules.limits import MAX_SHOWN_LIMIT_RANGES

_REFUSED = "the pods are rejected"
_NOUNS = {"Container": "container", "Pod": "pod", CLAIM: "claim"}


class Settings(RuleSettings):
    """No settings except the action: the LimitRanges of the namespace have the limits."""


@rule("limit-range", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    if ranges is UNKNOWN or not ranges:
        return
    for pods in job_pods(job, ctx):
        if not pods.template.containers:
            continue  # the rule `upstream-contract` rejects it
        by_resource: dict[tuple[object, ...], list[OutOfBounds]] = {}
        for fault in faults(pods.template, pods.resources, pods.disputed, tuple(ranges.values())):
            if isinstance(fault, OutOfBounds):
                by_resource.setdefault((fault.kind == CLAIM, fault.amounts.path, fault.amounts.name), []).append(fault)
            else:
                yield _by_default(f"{pods.path}.template", fault)
        for broken in by_resource.values():
            yield _out_of_bounds(f"{pods.path}.template", broken)


def _by_default(path: str, fault: NoLimit | AbovePod | HugePagesAlone) -> Violation:
    match fault:
        case NoLimit(amounts=stated):
            request = _shown(stated.request)
            limit = "no limit" if stated.limit is None else f"default limit {_shown(stated.limit)}"
            message = f"{limit} for the request {request}; {_REFUSED}"
            return Violation(f"{path}.{stated.path}.limits[{stated.name}]", message, fix=_fix(stated, fault.fit))
        case HugePagesAlone(path=where, name=name, amount=amount):
            message = f"default {name} {_shown(amount)} without cpu or memory; {_REFUSED}"
            return Violation(f"{path}.{where}", message, fix="Set limits[memory] to the needed amount.")
        case AbovePod(amount=amount, most=most):
            subject = "pod has" if not fault.requested else "containers get defaults and request"
            first, second = (most, amount) if fault.requested else (amount, most)
            message = f"{_shown(first)}, the {subject} {_shown(second)}; {_REFUSED}"
            fix = "Set it to {0} or more." if fault.requested else "Set it to {0} or less."
            return Violation(f"{path}.{fault.path}", message, fix=fix.format(_shown(second)))


def _out_of_bounds(path: str, broken: Sequence[OutOfBounds]) -> Violation:
    """One violation, because one fix satisfies all broken LimitRanges."""
    first = broken[0]
    stated = first.amounts
    bounds: dict[str, list[str]] = {}
    for fault in broken:
        amount, bound = _out(fault)
        bounds.setdefault(amount, []).append(bound)
    out = "; ".join(f"{amount}, {', '.join(texts)}" for amount, texts in bounds.items())
    sources = tuple(dict.fromkeys(source for fault in broken for source in fault.sources))
    effect = "its pods wait for ever" if first.kind == CLAIM else _REFUSED
    missing = stated.request is None or stated.limit is None
    return Violation(
        f"{path}.{_field(first)}",
        f"{out}; {effect} (LimitRange {first_of(sources, MAX_SHOWN_LIMIT_RANGES)})",
        fix=_fix(stated, first.fit, least=first.bounds.min, only_request=first.kind == CLAIM),
        reason=CauseReason.REQUIRED if missing else CauseReason.INVALID,
        degree=_degree(f"{path}.{stated.path} {stated.name}", broken),
    )


def _degree(of: str, broken: Sequence[OutOfBounds]) -> Degree | None:
    """None if the job states no amount."""
    amounts: dict[str, int] = {}
    for fault in broken:
        amount = _excess(fault)
        if amount is None:
            return None
        amounts[f"{fault.kind} {fault.bound}"] = amount
    return Degree(of, amounts)


def _excess(fault: OutOfBounds) -> int | None:
    request, limit = fault.amounts.request, fault.amounts.limit
    amounts = [amount for amount in (request, limit) if amount is not None]
    match fault.bound:
        case Bound.MAX:
            return max(amounts) if limit is not None else None
        case Bound.MIN:
            return -min(amounts) if request is not None else None
        case Bound.RATIO:
            return limit * quantity.NANO // request if limit is not None and request else None


def _field(fault: OutOfBounds) -> str:
    """The field, request or limit, that the user should change first."""
    stated = fault.amounts
    if stated.several:
        return stated.path
    limit_is_over = fault.bound is Bound.MAX and fault.fit is not None and stated.limit != fault.fit.limit
    requests = fault.kind == CLAIM or (stated.own_request and not limit_is_over)
    return f"{stated.path}.{'requests' if requests else 'limits'}[{stated.name}]"


def _out(fault: OutOfBounds) -> tuple[str, str]:
    """(amount, broken limit) in words."""
    stated, own = fault.amounts, fault.bounds
    request, limit = stated.request, stated.limit
    noun = _NOUNS[fault.kind]
    match fault.bound:
        case Bound.MAX:
            bound = f"at most {_shown(own.max)} for a {noun}"
            over = limit is None or request is None or own.max is None or limit > own.max
            of_limit = over and fault.kind != CLAIM
            amount = _amount(stated, "limit", limit) if of_limit else _amount(stated, "request", request)
        case Bound.MIN:
            bound = f"at least {_shown(own.min)} for a {noun}"
            under = limit is None or request is None or own.min is None or request < own.min
            amount = _amount(stated, "request", request) if under else _amount(stated, "limit", limit)
        case Bound.RATIO:
            bound = f"limits are at most {_shown(own.ratio)} times requests"
            if limit is None and request is None:
                amount = f"neither {stated.name} limit nor request"
            else:
                amount = f"{_amount(stated, 'limit', limit)} and {_amount(stated, 'request', request)}"
    return amount, bound


def _amount(stated: RequestAndLimit, field: str, amount: Quantity | None) -> str:
    if amount is None:
        return f"no {stated.name} {field}"
    if stated.several:
        return f"{stated.name} {field}s of {_shown(amount)} in all"
    default = "" if stated.own_request or stated.own_limit else "default "
    return f"{default}{field} {_shown(amount)}"


def _fix(stated: RequestAndLimit, fit: Fit | None, *, least: Quantity | None = None, only_request: bool = False) -> str:
    if fit is None:
        return "No amount fits: ask an administrator to change the LimitRanges."
    if fit is ANY:
        return f"Set limits[{stated.name}] to the needed amount."
    changes = []
    if not only_request and (fit.limit != stated.limit or not (stated.own_request or stated.own_limit)):
        changes.append(f"limits[{stated.name}] to {_shown(fit.limit)}")
    if stated.own_request and fit.request != stated.request:
        changes.append(f"requests[{stated.name}] to {_shown(fit.request)}")
    in_all = " in all" if stated.several else ""
    most = " or less" if stated.request is None and stated.limit is None and fit.limit != least else ""
    return f"Set {' and '.join(changes)}{in_all}{most}."


def _shown(amount: Quantity | None) -> str:
    return quantity.format(amount or Quantity(0))
