"""A job is small enough to be judged at once.

One review may not keep the others waiting, so there is a bound on what a job has: containers, variables, volumes and so
on, all of them far beyond real jobs. It is looked at first. A job beyond it is refused as it is: no other rule looks at
it, and nothing is injected.

An administrator can raise each bound up to a ceiling. Beyond the ceiling a job is refused whatever the action of this
rule is, unless `mode` lets every job through; within it `warn`, `audit` and `off` mean what they mean elsewhere. No
exemption holds for a refusal by this rule. A stored job that is too large, from before the service was installed, can
still be changed, but not in its `mpiReplicaSpecs`.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import msgspec
from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.api.size import KINDS, Bounds, beyond, longest_text
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.rules import CauseReason, Violation, rule

RULE: Final = "job-size"


def _most(default: int, ceiling: int, description: str) -> Any:
    return Field(default, ge=1, le=ceiling, description=f"{description}, at most {ceiling:,}.")


class Settings(RuleSettings):
    """How large a job may be. What is said of a template is for the launcher's and the workers' each."""

    max_bytes: int = _most(1024 * 1024, 1536 * 1024, "Bytes of the whole object as JSON")
    max_nested: int = _most(20_000, 50_000, "Mappings and lists in the object, by the braces and brackets of its JSON")
    max_text: int = _most(128 * 1024, 512 * 1024, "Characters of one text, such as a name, an argument or a variable")
    max_replica_specs: int = _most(10, 50, "Keys of `mpiReplicaSpecs`")
    max_labels: int = _most(100, 500, "Labels of the job or a template, and so many annotations")
    max_containers: int = _most(50, 200, "Containers and init containers of a template")
    max_arguments: int = _most(2000, 5000, "Words of `command` and `args` of all containers of a template")
    max_env: int = _most(1000, 2000, "Items of `env` and `envFrom` of all containers of a template")
    max_resources: int = _most(
        500,
        1000,
        "Requests, limits, claims and capabilities of all containers of a template, and as many of its volumes",
    )
    max_ports: int = _most(200, 1000, "Ports of all containers of a template")
    max_mounts: int = _most(500, 2000, "Volume mounts of all containers of a template")
    max_volumes: int = _most(100, 500, "Volumes of a template")
    max_references: int = _most(
        200, 1000, "Networks, pull secrets, and sources and items of projected volumes of a template"
    )
    max_tolerations: int = _most(100, 500, "Tolerations of a template")
    max_node_selector: int = _most(50, 200, "Keys of the `nodeSelector` of a template")
    max_affinity: int = _most(500, 1000, "Terms, expressions and values of the affinity of a template, together")
    max_constraints: int = _most(50, 200, "Topology spread constraints of a template")

    @cached_property
    def counted(self) -> Bounds:
        """The bound of each of `KINDS`."""
        return Bounds({kind: getattr(self, f"max_{kind}") for kind in KINDS})


CEILING: Final = Settings.model_construct(
    **{
        name: bound.le
        for name, field in Settings.model_fields.items()
        for bound in field.metadata
        if hasattr(bound, "le")
    }
)
"""The bounds that no policy can raise."""


@rule(RULE, Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The whole first; then what is counted; then, in a job that is not too large otherwise, the length of texts.

    Asked again by the same bounds, as in every review that comes as far as the rules, it remembers the answer.
    """
    by_settings = ctx.once(_by_settings, job)
    if (found := by_settings.get(id(settings))) is None:
        found = by_settings[id(settings)] = list(_check(job, settings, ctx))
    yield from found


def _by_settings(_: MPIJob, __: Context) -> dict[int, list[Violation]]:
    """Filled in by `check`."""
    return {}


def _check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if fault := whole(ctx.document, settings):
        yield fault
        return
    found = beyond(settings.counted, job)
    for size in found:
        yield _violation(f"max_{size.kind}", size.path, size.amount, settings.counted.most[size.kind], KINDS[size.kind])
    # No text can be longer than the whole.
    if not found and _length(ctx.document) > settings.max_text and (text := longest_text(job, settings.max_text)):
        yield _violation("max_text", _place(text.path), text.amount, settings.max_text, "characters")


def whole(document: bytes | msgspec.Raw, settings: Settings = CEILING) -> Violation | None:
    """The fault of an object that is too large as a whole, found without reading it.

    None larger than the ceiling can be stored: etcd takes 1.5 MiB (https://etcd.io/docs/v3.6/dev-guide/limit/).
    """
    data = bytes(document)
    if len(data) > settings.max_bytes:
        return _violation("max_bytes", "spec", len(data), settings.max_bytes, "bytes")
    # Each takes a byte at least. Those in texts are counted too: finding out which these are would be reading.
    if len(data) <= settings.max_nested:
        return None
    nested = data.count(b"{") + data.count(b"[")
    if nested > settings.max_nested:
        return _violation("max_nested", "spec", nested, settings.max_nested, "mappings and lists")
    return None


def _length(document: bytes | msgspec.Raw) -> int:
    return len(memoryview(document))


def _violation(setting: str, path: str, count: int, most: int, what: str) -> Violation:
    name = Settings.model_fields[setting].alias
    return Violation(
        path,
        f"too large to judge: {count:,} {what}, at most {most:,}",
        fix=f"Stay within that, or ask your administrator about {name} of the rule {RULE}.",
        reason=CauseReason.NOT_SUPPORTED,
    )


def _place(path: str) -> str:
    """The path as it stands in messages."""
    start = "spec.mpiReplicaSpecs."
    role, dot, rest = path.removeprefix(start).partition(".")
    return f"spec.mpiReplicaSpecs[{role}]{dot}{rest}" if path.startswith(start) else path
