"""Reads policy documents from files. A document that is not in a ConfigMap is called bare."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from webhook.api import untyped, yaml
from webhook.cel.trial import Trial, TrialFailed, try_expressions
from webhook.cli import files
from webhook.cli.files import STDIN, STDIN_TITLE, ManifestError
from webhook.cli.terminal import fail
from webhook.policy import custom_rules_check, document, store
from webhook.policy.document import API_VERSION, KIND, PolicyDocument, PolicyError, PolicyFault
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer, digest_of

DOCUMENT: Final = ", document "
GROUP: Final = API_VERSION.partition("/")[0]
TEST_KIND: Final = "MPIJobPolicyTest"
"""The kind of policy tests, which may be in the same folder as policies."""


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy document, valid or broken."""

    name: str
    """The name of the ConfigMap, or of the file of a bare document."""
    title: str
    """The place of the document, for messages."""
    document: PolicyDocument | None = None
    faults: tuple[PolicyFault, ...] = ()
    notes: tuple[str, ...] = ()
    in_configmap: bool = False
    labelled: bool = True
    """False for a ConfigMap without the label by which the service finds policies."""
    text: str = ""

    def layer(self, name: str = "") -> Layer:
        """The valid document as a layer. The default of `name` is the name of the document."""
        assert self.document is not None, "callers check `document` first"  # noqa: S101 - for the type checker
        return Layer(name or self.name, self.document, digest=digest_of(self.text))


@dataclass(slots=True)
class PolicyFiles:
    """The policies in files."""

    policies: list[PolicyFile] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Messages about other objects."""
    errors: list[ManifestError] = field(default_factory=list)

    @property
    def layers(self) -> list[Layer]:
        return [policy.layer() for policy in self.policies if policy.document is not None]


def load(arguments: Iterable[str]) -> PolicyFiles:
    """Read every policy document. An argument is a file, a directory, or `-` for standard input."""
    contents = PolicyFiles()
    for argument in arguments:
        try:
            sources = files.files(argument)
        except ManifestError as error:
            contents.errors.append(error)
            continue
        for source in sources:
            try:
                _read(source, contents)
            except ManifestError as error:
                contents.errors.append(error)
    return contents


def applied(changes: PolicyFiles, in_force: Sequence[Layer], *, without: Iterable[str] = ()) -> list[Layer]:
    """The policies after `kubectl apply` of `changes` and deletion of the policies with the names in `without`.

    KeyError if no policy has one of these names. The name of a bare document in `policies/warn.yaml` is `warn`.
    """
    new = [
        policy.layer(policy.name if policy.in_configmap else _called(policy.title))
        for policy in changes.policies
        if policy.document is not None
    ]
    outcome = {layer.name: layer for layer in (*in_force, *new)}
    for name in without:
        del outcome[name]
    return list(outcome.values())


def _called(title: str) -> str:
    file, _, number = title.partition(DOCUMENT)
    return Path(file).stem + (f"-{number}" if number else "")


def _read(source: str, contents: PolicyFiles) -> None:
    shown = STDIN_TITLE if source == STDIN else source
    content = files.read(source)
    try:
        parts = yaml.split(content) or [""]  # an empty file is a broken policy
    except yaml.YamlError as error:
        contents.policies.append(PolicyFile(shown, shown, faults=(PolicyFault("", str(error)),)))
        return
    for number, part in enumerate(parts, start=1):
        title = shown if len(parts) == 1 else f"{shown}{DOCUMENT}{number}"
        value = next(iter(yaml.load_all(part)), None)
        for path, item in _objects(value, ()):
            _sort(item, title=title, text=part, path=path, contents=contents)


def _objects(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    kind, items = (value.get("kind"), value.get("items")) if isinstance(value, dict) else (None, None)
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield path, value
        return
    for number, item in enumerate(items):
        item_kind = {"kind": kind.removesuffix("List")} if kind != "List" else {}
        yield from _objects(item_kind | item if isinstance(item, dict) else item, (*path, "items", number))


def _sort(value: Any, *, title: str, text: str, path: tuple[str | int, ...], contents: PolicyFiles) -> None:
    entry = untyped.mapping(value)
    kind = entry.get("kind")
    in_group = str(entry.get("apiVersion")).startswith(GROUP) and kind != TEST_KIND
    if kind == KIND or in_group or (kind is None and not path):
        policy = PolicyFile(title, title, text=text)
        in_list = PolicyFault("", "must be a document of its own, not in a list")
        contents.policies.append(_broken(policy, [in_list]) if path else _checked(policy))
    elif kind == "ConfigMap" and (embedded := _in_configmap(entry, title=title, text=text, path=path)):
        contents.policies.append(embedded)
    else:
        name = untyped.at(entry, "metadata").get("name", "")
        contents.others.append(f"{title}: skipped {kind or 'something without kind'} {name}".rstrip())


def _in_configmap(
    configmap: Mapping[str, Any], *, title: str, text: str, path: tuple[str | int, ...]
) -> PolicyFile | None:
    data = untyped.at(configmap, "data")
    label = untyped.at(configmap, "metadata", "labels").get(store.LABEL)
    if store.KEY not in data and label is None and not store.misplaced(data):
        return None
    name = str(untyped.at(configmap, "metadata").get("name", ""))
    title = f'{title}: ConfigMap "{name}"'
    padded, document_text = store.embedded(data, text, path), data.get(store.KEY)
    if padded is None and isinstance(document_text, str):
        title += f" (lines of its {store.KEY})"
    document_text = document_text if isinstance(document_text, str) else ""
    policy = PolicyFile(name, title, in_configmap=True, labelled=label == "true", text=document_text)
    return _checked(policy, data if padded is None else padded)


def _checked(policy: PolicyFile, data: Mapping[str, Any] | None = None) -> PolicyFile:
    """The policy with its parsed document, or with faults. `data` is the data of the ConfigMap, if there is one."""
    try:
        if data is None:
            content, text = document.load(policy.text, policy_model()), policy.text
        else:
            content, text = store.read_from(data, policy_model()), str(data[store.KEY])
    except PolicyError as error:
        return _broken(policy, error.faults)
    if not content.custom_rules:
        return replace(policy, document=content)
    try:
        outcomes = try_expressions(Trial(custom_rules_check.sources(content), content.params))
    except TrialFailed as error:
        fail(error)
    tried = custom_rules_check.check(content, text, outcomes)
    return _broken(policy, tried.faults) if tried.faults else replace(policy, document=content, notes=tried.notes)


def _broken(policy: PolicyFile, faults: Iterable[PolicyFault]) -> PolicyFile:
    return replace(policy, faults=tuple(sorted(faults, key=lambda fault: fault.line or 0)))
