"""The optional parts, and what a part may add to the core.

The core imports a part's modules only when it needs them. Texts such as "package.module:name" refer to an object in a
part's module. A part may import any module of the core.
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
"""The parts, in the order of their options in `serve --help`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHook:
    name: str
    """The name in metrics and in the log."""
    path: str
    option: str = ""
    """The option of `serve` that enables the path; empty if it is always enabled."""
    off: str = ""
    """The reply if the path is not enabled."""
    decide: str = ""
    """The function that decides a review, like `webhook.admission.pipelines.decide`."""
    too_expensive: str = ""
    """The function that decides about an object that takes too much processor time."""
    answer: str = ""
    """The function that answers requests that are not reviews. Its parameters are the request and the telemetry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck:
    """Objects of other kinds that the command `check` can check with an option."""

    option: str
    help: str
    kinds: tuple[str, ...]
    """Namespaced kinds. Without the option, `check` mentions the option when it reads an object of these kinds."""
    subject: str
    judge: str
    """A function that gets the files and the `JobWorld` of `check`, and returns the function that checks an object."""


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Permissions in all namespaces."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComponentRights:
    """A component of manifests/components that enables an option of `serve`, and the permissions for the option."""

    component: str
    """Also the name of the component's ClusterRole."""
    option: str
    without: str
    """The consequence of missing permissions."""
    rules: tuple[RoleRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    commands: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook`, and their functions."""
    conversions: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook convert`, and their functions."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of `serve` that enable the part, with their help texts."""
    excludes: Mapping[str, str] = field(default_factory=dict)
    """Settings of `serve` that cannot be combined with the options of the part, and why."""
    rights: tuple[ComponentRights, ...] = ()
    hooks: tuple[PartHook, ...] = ()
    webhooks: str = ""
    """The function that builds the entries of the webhook configurations for the enabled options."""
    watched: str = ""
    """The object that lists the resources which decisions need if the options are enabled."""
    jobs: str = ""
    """The object that describes a kind of jobs with quotas and Kueue; see `webhook.predict.other_jobs`."""
    check: PartCheck | None = None
    start: str = ""
    """The function that starts the controllers of the enabled options. If it returns a function, the service calls that
    function after each change of policies."""


@cache
def parts() -> tuple[Part, ...]:
    return tuple(import_module(f"webhook.parts.{name}").PART for name in NAMES)


def of(options: Set[str]) -> Iterator[Part]:
    return (part for part in parts() if part.options.keys() & options)


@cache
def options() -> Mapping[str, str]:
    return {option: text for part in parts() for option, text in part.options.items()}
