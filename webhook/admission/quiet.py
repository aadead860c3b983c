"""Which rules need not be asked about a job: those that found nothing in jobs of the same spec.

Jobs come again: as a dry run and then in earnest, from a pipeline each night, under another name. What a rule looks at
beside the spec is watched when a spec has come a few times. Where that is the same, it would find nothing again: the
policy, the namespace, the labels and annotations of the job, and what it asked the cluster for. A rule that looks at
more, such as the job's name or a long list of the cluster, is always asked, and so are rules of plug-ins, own rules of
the policy, and rules that found something. So is every rule about an update.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, NoReturn

import msgspec

from webhook.admission.messages import Finding
from webhook.api.mpijob import MPIJob, ObjectMeta
from webhook.cluster import asked
from webhook.cluster.asked import AskedView, Facts
from webhook.kit import written_templates
from webhook.kit.context import Context
from webhook.kit.settings import Action, RuleSettings
from webhook.policy.in_force import Policy
from webhook.rules import Rule, job_size

# Watching costs as much as judging once more: what comes as a dry run and in earnest does not pay for it.
TIMES: Final = 3
_KEY: Final = "quiet"
# What is known of a spec is kept with it, in the room that `written` counts for specs: so many characters of names, and
# questions to the cluster; and so many bytes of labels and annotations, of more a digest.
MOST_OF_NAMES: Final = 1024
MOST_ASKED: Final = 64
_MOST_DESCRIBED: Final = 512
# It measures the whole object.
_NEVER: Final = frozenset({job_size.RULE})


class _Looked(BaseException):
    """A rule looks at what may be another next time; no rule catches this."""


def _looked(*_: object) -> NoReturn:
    raise _Looked


def _noted(field: str) -> Any:
    plain = getattr(ObjectMeta, field)

    def look(metadata: "_Metadata") -> Any:
        metadata.looks += 1
        return plain.__get__(metadata)

    return property(look)


class _Metadata(ObjectMeta, gc=False):
    """Labels and annotations; and a name, at which somebody `looks`."""

    looks: int = 0
    name, generate_name, namespace = map(_noted, ("name", "generate_name", "namespace"))
    uid = deletion_timestamp = owner_references = property(_looked)


class _Job(MPIJob, gc=False):
    """Spec and metadata."""

    # All jobs that come here are of one kind.
    api_version = raw_status = property(_looked)


class _Context(Context, frozen=True, eq=False):
    """Without who asks, and with a document that cannot be read."""

    username = groups = own_rules = property(_looked)
    # It counts how often it is asked in a review.
    closest_name = property(_looked)


class _Unread:
    """In place of the document's JSON."""


Asked = tuple[tuple[Rule, RuleSettings, Action], ...]


class Like(msgspec.Struct):
    """Jobs of one spec: what was the same in the last few reviews, and the rules to ask about another one."""

    policy: Policy
    namespace: str
    described: bytes
    """Labels and annotations, or a digest of them."""
    rules: Asked
    came: int = 0
    facts: Facts = {}
    """What the other rules asked the cluster for, and the answers."""
    name: tuple[str, ...] = ()
    rules_of_name: Asked = ()
    """Those of `rules` to ask about another job of this name."""
    facts_of_name: Facts = {}
    """What the others of them asked for."""

    def includes(self, job: MPIJob, ctx: Context, policy: Policy) -> bool:
        """Whether nothing that any of the other rules looks at is another than before."""
        return (
            policy is self.policy
            and ctx.namespace == self.namespace
            and _described(job) == self.described
            and asked.hold(self.facts, ctx.view)
        )

    def to_ask(self, job: MPIJob, ctx: Context) -> Asked:
        """The rules to ask about a job that is included."""
        same = self.name == _name(job) and asked.hold(self.facts_of_name, ctx.view)
        return self.rules_of_name if same else self.rules

    def watch(self, job: MPIJob, ctx: Context, found: Iterable[tuple[Finding, Action]]) -> None:
        """Find out what the rules look at that found nothing in this job; once it has come so often."""
        if self.came != TIMES:
            return
        loud = {*_NEVER, *(finding.rule for finding, _ in found)}
        name, generate_name, namespace = _name(job)
        described = job.metadata.labels, job.metadata.annotations
        left: list[Any] = []
        of_name: list[Any] = []
        facts: Facts = {}
        facts_of_name: Facts = {}
        for each in self.rules:
            view, metadata = AskedView(ctx.view), _Metadata(name, generate_name, namespace, "", *described)
            stand_in = _Job(metadata=metadata, spec=job.spec)
            if each[0].id in loud or each[0].plugin or not _is_quiet(each, stand_in, view, ctx):
                of_name.append(each)
                left.append(each)
            elif metadata.looks:
                facts_of_name |= view.facts
                left.append(each)
            else:
                facts |= view.facts
        if len(facts) + len(facts_of_name) > MOST_ASKED:
            return
        # The facts first: another thread may judge a job like it.
        self.facts, self.facts_of_name = facts, facts_of_name
        self.rules, self.rules_of_name = tuple(left), tuple(of_name)
        self.name = _name(job)


def jobs_like(job: MPIJob, ctx: Context, policy: Policy) -> Like | None:
    """What is known of jobs with its spec; None for an update, where the job is held against other bounds, and where
    its names are longer than any.
    """
    if ctx.operation != "CREATE" or ctx.admitted is not policy.admitted:
        return None
    if len(ctx.namespace) + sum(map(len, _name(job))) > MOST_OF_NAMES:
        return None
    kept = job.spec.__dict__
    like: Like | None = kept.get(_KEY)
    if like is None or not like.includes(job, ctx, policy):
        like = kept[_KEY] = Like(policy, ctx.namespace, _described(job), policy.rules)
    like.came += 1
    return like


def _described(job: MPIJob) -> bytes:
    metadata = job.metadata
    written = msgspec.json.encode((metadata.labels, metadata.annotations))
    return blake2b(written, digest_size=32).digest() if len(written) > _MOST_DESCRIBED else written


def _name(job: MPIJob) -> tuple[str, str, str]:
    metadata = job.metadata
    return metadata.name, metadata.generate_name, metadata.namespace


def _is_quiet(each: tuple[Rule, RuleSettings, Action], job: MPIJob, view: AskedView, ctx: Context) -> bool:
    """Whether the rule finds nothing in a job that has a spec, a name, labels and annotations alone."""
    rule, settings, _ = each
    unread: Any = _Unread()
    stand_in = _Context(namespace=ctx.namespace, document=unread, view=view, admitted=ctx.admitted)
    written_templates.remember(written_templates.written_templates(ctx), stand_in)
    try:
        return not any(True for _ in rule.check(job, settings, stand_in)) and view.complete
    except (_Looked, TypeError):  # the latter where it reads the document
        return False
