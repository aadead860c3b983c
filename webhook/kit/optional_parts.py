"""The optional parts, and what each may add to the core.

The core reads this alone, and has a part's modules imported when it needs them: "package.module:name" is the name in
that module. A part imports what it likes of the core.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

NAMES: Final = (
    "job_metrics",
    "network_policies",
    "disruption_budgets",
    "standing_audit",
    "older_versions",
    "trainer",
    "sagemaker",
    "playground",
    "why",
)
"""In the order in which `serve --help` shows their options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHook:
    """Reviews that a part answers."""

    name: str
    """In metrics and in the log."""
    path: str
    option: str = ""
    """The option of `serve` without which the path does not exist; empty for one that always does."""
    off: str = ""
    """The reason."""
    decide: str = ""
    """Makes the decision on a review, as `webhook.admission.pipelines.decide` does."""
    too_expensive: str = ""
    """Makes the decision on an object that takes too much processor time."""
    answer: str = ""
    """Makes the reply from the request and the telemetry, for requests other than reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck:
    """Objects of other kinds that `check` judges with an option."""

    option: str
    help: str
    kinds: tuple[str, ...]
    """The kinds in a namespace; `check` without the option mentions the option when it sees one."""
    subject: str
    """These, in words."""
    judge: str
    """Returns the function that judges one object, from the files and the job world."""


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Some rights in all namespaces."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComponentRights:
    """A component of manifests/components that adds an option of `serve`, and the rights that the option needs."""

    component: str
    """Its ClusterRole is called after it."""
    option: str
    without: str
    """The consequence of missing rights."""
    rules: tuple[RoleRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The additions of a part."""

    commands: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook`, and where each is."""
    conversions: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook convert`, and where each is."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of `serve` that switch it on, and the help of each."""
    excludes: Mapping[str, str] = field(default_factory=dict)
    """Settings of `serve` that those options exclude, and why."""
    rights: tuple[ComponentRights, ...] = ()
    hooks: tuple[PartHook, ...] = ()
    webhooks: str = ""
    """Makes the hooks of the webhook configurations, where the options ask for it."""
    watched: str = ""
    """The resources that are watched for decisions, where the options ask for it."""
    jobs: str = ""
    """A kind of jobs that quotas and Kueue count, as described in `webhook.predict.other_jobs`."""
    check: PartCheck | None = None
    start: str = ""
    """Starts what runs next to reviews, where the options ask for it; a function that it returns is called whenever
    policies have changed."""


@cache
def parts() -> tuple[Part, ...]:
    """The additions of all parts."""
    return tuple(import_module(f"webhook.parts.{name}").PART for name in NAMES)


def of(options: Set[str]) -> Iterator[Part]:
    """The parts that these options of `serve` switch on."""
    return (part for part in parts() if part.options.keys() & options)


@cache
def options() -> Mapping[str, str]:
    """The options of `serve` that switch parts on, and the help of each."""
    return {option: text for part in parts() for option, text in part.options.items()}
