"""The policy document (`kind: MPIJobPolicy`), assembled from the settings of every rule and injection."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pydantic import Field, ValidationError, create_model

from webhook import yaml
from webhook.policy.settings import Action, InjectionSettings, RuleSettings, Settings

API_VERSION: Literal["policy.training.openshift.io/v1"] = "policy.training.openshift.io/v1"
KIND: Literal["MPIJobPolicy"] = "MPIJobPolicy"

# Updates by these pass unchecked: Kueue starts, stops and restores jobs through them, and the garbage collector
# removes finalizers. A refusal would leak quota or leave objects behind.
CONTROLLERS = (
    "system:serviceaccount:kueue-system:kueue-controller-manager",
    "system:serviceaccount:openshift-kueue-operator:kueue-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
)


class PolicyError(ValueError):
    """The document cannot be used; one `field: reason` line for each fault."""


class Described(Protocol):
    """A rule or an injection, as far as its settings go."""

    @property
    def settings(self) -> type[Settings]:
        """The settings' model."""
        ...


class Document(Settings):
    """What every policy document has; `assemble` adds `rules` and `injections`."""

    api_version: Literal["policy.training.openshift.io/v1"] = Field(API_VERSION, description="Always this.")
    kind: Literal["MPIJobPolicy"] = Field(KIND, description="Always this.")
    mode: Literal["enforce", "warn", "audit"] = Field(
        "enforce", description="A ceiling on every rule's action: warn and audit let every job through."
    )
    controllers: tuple[str, ...] = Field(
        CONTROLLERS, description="Users whose updates of jobs pass unchecked: Kueue and Kubernetes' own controllers."
    )
    rules: Settings
    injections: Settings

    def settings_of_rule(self, rule_id: str) -> RuleSettings:
        """The settings of one rule."""
        settings: RuleSettings = getattr(self.rules, _attribute(rule_id))
        return settings

    def settings_of_injection(self, injection_id: str) -> InjectionSettings:
        """The settings of one injection."""
        settings: InjectionSettings = getattr(self.injections, _attribute(injection_id))
        return settings

    @property
    def ceiling(self) -> Action:
        """The strongest action that `mode` allows."""
        return Action.DENY if self.mode == "enforce" else Action(self.mode)


def assemble(rules: Mapping[str, Described], injections: Mapping[str, Described]) -> type[Document]:
    """The document's model for these rules and injections."""
    return create_model(
        KIND,
        __base__=Document,
        __doc__="What an administrator enforces and puts in.",
        rules=_section("Rules", rules, "Settings of each rule."),
        injections=_section("Injections", injections, "Settings of each injection."),
    )


def load(text: str | bytes, model: type[Document]) -> Document:
    """The document in YAML `text`; PolicyError that names each field and what is wrong with it."""
    try:
        documents = yaml.load_all(text)
    except yaml.YamlError as error:
        raise PolicyError(str(error)) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise PolicyError(f"expected one document of kind {KIND}, found {_found(documents)}")
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if field not in documents[0]:
            raise PolicyError(f"{field}: is missing, write {field}: {expected}")
    try:
        return model.model_validate(documents[0])
    except ValidationError as error:
        raise PolicyError("\n".join(_line(fault["loc"], fault) for fault in error.errors())) from None


def _section(name: str, entries: Mapping[str, Described], description: str) -> Any:
    fields: dict[str, Any] = {
        _attribute(key): (entry.settings, Field(default_factory=entry.settings, alias=key))
        for key, entry in entries.items()
    }
    section = create_model(name, __base__=Settings, __doc__=description, **fields)
    return (section, Field(default_factory=section, description=description))


def _attribute(entry_id: str) -> str:
    return entry_id.replace("-", "_")


def _found(documents: list[Any]) -> str:
    return f"{len(documents)} documents" if len(documents) != 1 else f"a {type(documents[0]).__name__}"


def _line(location: tuple[int | str, ...], fault: Mapping[str, Any]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if fault["type"] == "extra_forbidden":
        reason = "is not a setting; `mpijob-webhook rules` lists rules and injections, `explain` their settings"
    else:
        reason = fault["msg"].removeprefix("Value error, ")
    value = fault.get("input")
    shown = f" (it is {value!r})" if isinstance(value, str | int | float | bool) else ""
    return f"{path or 'the document'}: {reason}{shown if fault['type'] != 'extra_forbidden' else ''}"
