"""The policy document (`kind: MPIJobPolicy`), assembled from the settings of every rule and injection."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationError,
    WrapValidator,
    create_model,
)

from webhook.api import yaml
from webhook.api.labels import Selector
from webhook.api.names import closest_name
from webhook.api.text import visible
from webhook.kit.custom_rules import PREFIX, is_custom_id
from webhook.kit.settings import Action, InjectionSettings, RuleSettings, Settings
from webhook.policy import faults
from webhook.policy.custom_rules import CustomRule, CustomRules
from webhook.policy.exemptions import EVERY_RULE, Exemption
from webhook.policy.faults import Location
from webhook.policy.limits import MAX_CUSTOM_RULES, MAX_ENTRIES


def beyond(document: Any) -> list[tuple[Location, str]]:
    """(location, reason) for each list or mapping of a YAML document that exceeds a policy's limits."""
    faults: list[tuple[Location, str]] = []
    places: list[tuple[Location, Any]] = [((), document)]
    for path, value in places:  # the list grows in the loop
        if not isinstance(value, dict | list):
            continue
        noun, limit = ("rules", MAX_CUSTOM_RULES) if path == ("rules", PREFIX) else ("entries", MAX_ENTRIES)
        if len(value) > limit:
            faults.append((path, f"has {len(value):,} {noun}, the maximum is {limit:,}"))
            continue
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        places += [((*path, key), entry) for key, entry in entries]
    return faults


API_VERSION: Literal["policy.training.openshift.io/v1"] = "policy.training.openshift.io/v1"
KIND: Literal["MPIJobPolicy"] = "MPIJobPolicy"
InjectionWarnings = Literal["one-line", "each", "none"]
SshKeys = Literal["rsa-4096", "ecdsa-p521", "ecdsa-p256", "ed25519", "operator"]

INJECT_ONLY = "The enabled injections that are used: [] for none, null for all."

# Most updates by these users are not checked (see the field `controllers`). Kueue starts, stops and restores jobs by
# updates, and the garbage collector removes finalizers. A rejected update would leak quota or objects.
CONTROLLERS = (
    "system:serviceaccount:kueue-system:kueue-controller-manager",
    "system:serviceaccount:openshift-kueue-operator:kueue-controller-manager",
    "system:serviceaccount:kueue-system:multikueue-sa",  # on worker clusters; the name is from Kueue's setup page
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
)
TOO_EXPENSIVE = "takes too much processor time to read. Make it shorter"


@dataclass(frozen=True, slots=True)
class PolicyFault:
    """A mistake in the document. `field` is empty for the document itself. Lines start at 1."""

    field: str
    reason: str
    line: int | None = None

    def __post_init__(self) -> None:
        # Both texts may contain user input.
        object.__setattr__(self, "field", visible(self.field))
        object.__setattr__(self, "reason", visible(self.reason))

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.field or 'the document'}: {self.reason}"


class PolicyError(ValueError):
    """The document cannot be used. The text has a line per fault; `more` is the number of omitted faults."""

    def __init__(self, *faults: PolicyFault, more: int = 0) -> None:
        super().__init__("\n".join([*map(str, faults), *([f"... and {more} more"] if more else [])]))
        self.faults = faults
        self.more = more


_OF_SELECTORS: Final = ("matchLabels", "matchExpressions")


def _selector(value: Any) -> Any:
    by_name = {"key": "kubernetes.io/metadata.name", "operator": "In"}
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        corrected = yaml.dump_inline({"matchExpressions": [{**by_name, "values": value}]})
        raise ValueError(f"must be a label selector: {corrected}"[:500])
    if isinstance(value, dict) and value and not value.keys() & {*_OF_SELECTORS}:
        spelt = {closest_name(str(key), _OF_SELECTORS) or key: inner for key, inner in value.items()}
        selector = {"matchLabels": value} if spelt == value else spelt
        raise ValueError(f"must be a label selector: {yaml.dump_inline(selector)}"[:500])
    if isinstance(value, dict | None):
        Selector.parse(value)  # raises ValueError with the path of a fault
    return value


def _names_of_params(params: dict[str, Any]) -> dict[str, Any]:
    for name in params:
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f'"{name}" cannot be read by an expression: use only letters, digits and _')
    return params


class PolicyDocument(Settings):
    """The common fields of policy documents. `assemble` adds `rules` and `injections`."""

    api_version: Literal["policy.training.openshift.io/v1"] = Field(
        API_VERSION, description="The only supported value."
    )
    kind: Literal["MPIJobPolicy"] = Field(KIND, description="The only supported value.")
    priority: int = Field(
        0,
        ge=-1_000_000,
        le=1_000_000,
        description="If several documents are for the same namespace, the one with the higher priority wins.",
    )
    namespaces: Annotated[dict[str, Any] | None, BeforeValidator(_selector)] = Field(
        None, description="A label selector: the namespaces that the document is for; absent for all."
    )
    mode: Literal["enforce", "warn", "audit"] = Field(
        "enforce", description="The strictest action of every rule: `warn` and `audit` admit every job."
    )
    inject_only: tuple[str, ...] | None = Field(None, description=INJECT_ONLY)
    controllers: tuple[str, ...] = Field(
        CONTROLLERS,
        description="Kueue and Kubernetes' own controllers, trusted only in clusters with Kueue. Their updates of jobs"
        " get no injections, and are not checked if they change only metadata and what Kueue changes to start and stop"
        " a job. They may create a job without the required injections, if a controller owns the job or Kueue copied it"
        " from another cluster.",
    )
    injection_warnings: InjectionWarnings = Field(
        "one-line",
        description="The warnings about the injections into a job: `one-line` for one warning about all of them,"
        " `each` for one warning per injection, `none` for no warning."
        " Failed requests for an injection are always reported.",
    )
    ssh_keys: SshKeys = Field(
        "rsa-4096",
        description="The algorithm of each job's SSH key pair. With `operator`, a job keeps the MPI Operator's pair "
        "(ECDSA P-521).",
    )
    params: Annotated[dict[str, JsonValue], AfterValidator(_names_of_params)] = Field(
        {},
        description="Values for custom rules, which read them as params.NAME. The entries of all documents are merged.",
    )
    exemptions: tuple[Exemption, ...] = Field(
        (), description="Exemptions from rules: for whom, until when, and why. The entries of all documents are merged."
    )
    rules: Settings = Field(default_factory=Settings.model_construct)
    injections: Settings = Field(default_factory=Settings.model_construct)

    @cached_property
    def selector(self) -> Selector | None:
        """The label selector; None selects all namespaces."""
        return None if self.namespaces is None else Selector.parse(self.namespaces)

    def settings_of_rule(self, rule_id: str) -> RuleSettings:
        settings: RuleSettings = getattr(self.rules, attribute(rule_id))
        return settings

    @property
    def custom_rules(self) -> tuple[CustomRule, ...]:
        custom_rules: tuple[CustomRule, ...] = getattr(self.rules, PREFIX, ())
        return custom_rules

    def settings_of_injection(self, injection_id: str) -> InjectionSettings:
        settings: InjectionSettings = getattr(self.injections, attribute(injection_id))
        return settings

    def injects(self, injection_id: str) -> bool:
        allowed = self.inject_only is None or injection_id in self.inject_only
        return allowed and self.settings_of_injection(injection_id).enabled

    @property
    def ceiling(self) -> Action:
        """The strongest action that `mode` allows."""
        return Action.DENY if self.mode == "enforce" else Action(self.mode)


def assemble(rules: Mapping[str, type[Settings]], injections: Mapping[str, type[Settings]]) -> type[PolicyDocument]:
    return create_model(
        KIND,
        __base__=PolicyDocument,
        __doc__="The rules that an administrator enforces and the values that are injected.",
        inject_only=_names_of(injections, INJECT_ONLY),
        exemptions=_exemptions(rules),
        rules=_section("Rules", rules, "Settings of each rule.", custom_rules=True),
        injections=_section("Injections", injections, "Settings of each injection."),
    )


def load(text: str | bytes, model: type[PolicyDocument], most: int | None = None) -> PolicyDocument:
    """The document in YAML `text`; PolicyError with at most `most` faults."""
    try:
        documents = yaml.load_all(text)
    except yaml.YamlError as error:
        raise PolicyError(PolicyFault("", str(error))) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise PolicyError(PolicyFault("", f"expected one mapping of kind {KIND}, found {_found(documents)}"))
    if documents[0].get("kind") == "ConfigMap":
        raise PolicyError(PolicyFault("", "is a ConfigMap: write only the content of its policy.yaml"))
    missing = [
        PolicyFault(field, f"is missing, write {field}: {expected}")
        for field, expected in (("apiVersion", API_VERSION), ("kind", KIND))
        if field not in documents[0]
    ]
    if missing:
        raise PolicyError(*missing)
    if too_much := beyond(documents[0]):
        raise PolicyError(*faults_at(too_much, text))
    try:
        return model.model_validate(documents[0])
    except ValidationError as error:
        shown_faults, more = faults.first(error, model, most)
        raise PolicyError(*faults_at(shown_faults, text), more=more) from None


def faults_at(located: Sequence[tuple[faults.Location, str]], text: str | bytes) -> list[PolicyFault]:
    lines = yaml.lines(text, to=[location for location, _ in located]) if located else {}
    return [_fault(location, reason, lines) for location, reason in located]


def _section(name: str, entries: Mapping[str, type[Settings]], description: str, *, custom_rules: bool = False) -> Any:
    fields: dict[str, Any] = {
        attribute(key): (settings, Field(default_factory=settings.model_construct, alias=key))
        for key, settings in entries.items()
    }
    if custom_rules:
        fields[PREFIX] = (CustomRules, Field((), description="Custom rules of the policy, in CEL."))
    section = create_model(name, __base__=Settings, __doc__=description, **fields)
    return (section, Field(default_factory=section.model_construct, description=description))


def _names_of(entries: Iterable[str], description: str) -> Any:
    """A list of these names. With this type, the fault of a wrong name has a position, and editors complete names."""
    name: Any = Literal.__getitem__(tuple(entries))
    return (tuple.__class_getitem__((name, ...)) | None, Field(None, description=description))


def _exemptions(rules: Iterable[str]) -> Any:
    """A list of exemptions. With the type of `rules`, the fault of a wrong rule name has a position."""
    built_in: Any = Literal.__getitem__((EVERY_RULE, PREFIX, *rules))
    rule = Annotated[built_in, WrapValidator(lambda value, check: value if is_custom_id(value) else check(value))]
    fields: dict[str, Any] = {"rules": (tuple.__class_getitem__((rule, ...)), Exemption.model_fields["rules"])}
    entry = create_model("Exemption", __base__=Exemption, __doc__=Exemption.__doc__, **fields)
    return (
        tuple.__class_getitem__((entry, ...)),
        Field((), description=PolicyDocument.model_fields["exemptions"].description),
    )


def attribute(entry_id: str) -> str:
    return entry_id.replace("-", "_")


def _found(documents: list[Any]) -> str:
    if len(documents) != 1:
        return f"{len(documents)} documents" if documents else "nothing"
    return "a list" if isinstance(documents[0], list) else "a plain value, not `key: value`"


def _fault(location: faults.Location, reason: str, lines: Mapping[faults.Location, int]) -> PolicyFault:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    line = next((lines[location[:end]] for end in range(len(location), 0, -1) if location[:end] in lines), None)
    return PolicyFault(field, reason, line)
