"""Pods get the policy's tolerations, and may run on tainted nodes.

Nothing is injected unless `tolerations` are set. Both pod templates get each toleration that the user's tolerations do
not cover. The user's toleration covers the policy's toleration if the user's toleration is broader, or if the two
differ only in `tolerationSeconds`.

A toleration does not make the scheduler prefer the tainted nodes. The injection `node-selector` selects nodes.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from webhook.api import names
from webhook.api.mpijob import MPIJob
from webhook.api.pod import Toleration
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, in_templates
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings
from webhook.kit.settings import Settings as PolicySettings

EXISTS = "Exists"


class PolicyToleration(PolicySettings):
    """A toleration, as in a pod. It is validated as in the API server (kubernetes `pkg/apis/core/validation`)."""

    key: str = Field("", description="The taint's key; empty for every key.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="Equal compares the value, Exists does not.")
    value: str = Field("", description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="The taint's effect; null for every effect."
    )
    toleration_seconds: int | None = Field(
        None, ge=-(2**63), le=2**63 - 1, description="Seconds for which NoExecute is tolerated; null for ever."
    )

    @model_validator(mode="after")
    def _valid(self) -> "PolicyToleration":
        if not self.key and self.operator != EXISTS:
            raise ValueError("without a key the operator must be Exists")
        if self.key and (problem := names.label_key_problem(self.key)):
            raise ValueError(f'the key "{self.key}" {problem}')
        if self.value and self.operator == EXISTS:
            raise ValueError("the operator Exists takes no value")
        if problem := names.label_value_problem(self.value):
            raise ValueError(f'the value "{self.value}" {problem}')
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("tolerationSeconds is only for the effect NoExecute")
        return self

    @property
    def item(self) -> dict[str, object]:
        """The fields for a pod."""
        fields = self.model_dump(by_alias=True)
        return {name: value for name, value in fields.items() if value not in ("", None)}

    @property
    def shown(self) -> str:
        """The taints in a message: `key=value:effect`."""
        value = "" if self.operator == EXISTS else f"={self.value}"
        return f"{self.key or 'every taint'}{value}{f':{self.effect}' if self.effect else ''}"


class Settings(InjectionSettings):
    """The tolerations."""

    tolerations: tuple[PolicyToleration, ...] = Field(
        (), description="Tolerations, as in a pod: key, operator, value, effect, tolerationSeconds."
    )


def _is_of_a_policy(_: str, item: Any) -> bool:
    with suppress(ValidationError):
        return bool(PolicyToleration.model_validate(item).item == item)
    return False


FORMS: Final = in_templates("spec", "tolerations", ITEM, holds=_is_of_a_policy, when=ComesBack.SAME_FILE)


@injection("tolerations", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    added: dict[str, None] = {}
    for role, _, replica in job.replicas if settings.tolerations else ():
        if replica.template.spec is None:
            continue
        path = (*template_path(role), "spec", "tolerations")
        own = replica.template.spec.tolerations or []
        for added_toleration in settings.tolerations:
            if any(_covers(toleration, added_toleration) for toleration in own):
                continue
            if patch.append(path, added_toleration.item, key=None):
                added[added_toleration.shown] = None
    if added:
        yield f"added tolerations for {', '.join(added)}"


def _covers(own: Toleration, other: PolicyToleration) -> bool:
    """Whether `own` tolerates every taint that `other` tolerates (kubernetes `core/v1/toleration.go`)."""
    if own.effect and own.effect != other.effect:
        return False
    if own.operator == EXISTS:
        return not own.key or own.key == other.key
    return (own.operator or "Equal", own.key, own.value or "") == (other.operator, other.key, other.value)
