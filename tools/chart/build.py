"""The files of the chart: every manifest, with the condition under which its overlay or component is installed."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.controlplane.recipe import Recipe, Target
from tests.support.paths import MANIFESTS
from tools.chart import values
from tools.chart.sources import CERTIFICATES, camel, components, components_of, kustomization
from tools.chart.templating import Expression, Item, Key, guarded, template
from webhook import PROGRAM, __version__
from webhook.api.yaml import load_all

HELM: Final = Recipe(
    what="Helm, which renders the chart",
    takes="2 to 6 minutes",
    targets=(Target(name="helm", package="helm.sh/helm/v3/cmd/helm"),),
    root=Path(__file__).parent,
)
CHART: Final = MANIFESTS / "chart"
NOTICE: Final = "# Written by `make chart` out of the manifests for kustomize: changes here are lost.\n"
NAMESPACE: Final = "@NAMESPACE@"
_NAME: Final = "app.kubernetes.io/name"
_PART_OF: Final = {"app.kubernetes.io/part-of": PROGRAM}
_VERSION: Final = {"app.kubernetes.io/version": Expression("{{ .Chart.AppVersion | quote }}")}

Json = Any


def files() -> dict[str, str]:
    """The text of every file of the chart by path."""
    return {
        "Chart.yaml": _chart(),
        "values.yaml": values.text(),
        "values.schema.json": json.dumps(values.schema(), indent=2) + "\n",
        "templates/NOTES.txt": values.NOTES,
        **{f"templates/{name}.yaml": NOTICE + text for name, text in _templates().items()},
    }


def write() -> None:
    (CHART / "templates").mkdir(parents=True, exist_ok=True)
    wanted = {CHART / name for name in files()}
    for path in CHART.rglob("*.*"):
        if path not in wanted:
            path.unlink()
    for name, text in files().items():
        (CHART / name).write_text(text, encoding="utf-8")


def _chart() -> str:
    return (
        f"{NOTICE}apiVersion: v2\nname: {PROGRAM}\ntype: application\n"
        f"version: {__version__}\nappVersion: {__version__}\n"
        "description: The cluster's verdict on Kubeflow MPIJobs at submission, and what a job lacks, injected.\n"
    )


def _templates() -> dict[str, str]:
    base = {
        Path(name).stem: [_labelled(each, whole=True) for each in _objects(f"base/{name}")]
        for name in kustomization("base")["resources"]
        if name != "namespace.yaml"  # created by helm's --create-namespace, or by the user
    }
    found = [each for objects in base.values() for each in objects]
    extra: dict[str, list[tuple[Json, str]]] = {}
    parts = [(condition, folder, kustomization(folder)) for condition, folder in _parts()]
    for condition, folder, part in parts:
        for resource in part.get("resources", ()):
            if resource == "../../base":
                continue
            for each in _resource(folder, resource):
                extra.setdefault(Path(folder).name, []).append((_labelled(each, whole=False), condition))
    found += [each for objects in extra.values() for each, _ in objects]
    for condition, folder, part in parts:
        for patch in part.get("patches", ()):
            for operation in _operations(folder, patch):
                for target in found:
                    if _meant(target, patch["target"]):
                        _apply(target, operation, condition)
    _with_values(found)
    texts = {name: "---\n".join(_text(each) for each in objects) for name, objects in base.items()}
    for name, objects in extra.items():
        texts[name] = "".join(guarded(f"---\n{_text(each)}", condition) for each, condition in objects)
    texts["hooks"] = values.NO_REPLICA_YET + texts["hooks"]
    return texts


def _parts() -> Iterator[tuple[str, str]]:
    """(condition, folder) for every overlay and its components, then for the optional components."""
    conditions: dict[str, list[str]] = {}
    for value, overlay in CERTIFICATES.items():
        condition = f'eq .Values.certificates "{value}"'
        for folder in (*(f"components/{name}" for name in components_of(overlay)), f"overlays/{overlay}"):
            conditions.setdefault(folder, []).append(condition)
    for folder, of_it in conditions.items():
        yield (of_it[0] if len(of_it) == 1 else f"or {' '.join(f'({each})' for each in of_it)}"), folder
    for name in components():
        yield f".Values.components.{camel(name)}", f"components/{name}"


def _resource(folder: str, resource: str) -> list[Json]:
    if resource == "../../policies":
        return [
            each for name in kustomization("policies")["resources"] for each in _objects(f"policies/{name}", own=True)
        ]
    return _objects(f"{folder}/{resource}")


def _objects(path: str, *, own: bool = False) -> list[Json]:
    """The objects of a file, in the namespace of the release."""
    found = copy.deepcopy(load_all((MANIFESTS / path).read_text(encoding="utf-8")))
    for each in found:
        if own:
            each["metadata"]["namespace"] = PROGRAM
    return [_released(each) for each in found]


def _released(value: Json, within: str = "") -> Json:
    """The object with the namespace of the release instead of kustomize's namespace."""
    if isinstance(value, dict):
        return {
            key: NAMESPACE if key == "namespace" and inner == PROGRAM else _released(inner, within or _selecting(key))
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_released(inner, within) for inner in value]
    if not isinstance(value, str):
        return value
    if within == "namespaceSelector" and value == PROGRAM:
        return NAMESPACE
    for before in (f"{PROGRAM}.{PROGRAM}.svc", f"--policy-namespace={PROGRAM}"):
        after = before.removesuffix(PROGRAM) + NAMESPACE if before.endswith(PROGRAM) else f"{PROGRAM}.{NAMESPACE}.svc"
        value = value.replace(before, after)
    return f"{NAMESPACE}/{PROGRAM}" if value == f"{PROGRAM}/{PROGRAM}" else value


def _selecting(key: str) -> str:
    return key if key == "namespaceSelector" else ""


def _labelled(found: Json, *, whole: bool) -> Json:
    """The object with the labels that kustomize adds. Objects of the base (`whole`) get all labels."""
    added = {_NAME: PROGRAM, **_VERSION} if whole else {}
    metadata = found["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **added, **_PART_OF}
    if whole and found["kind"] == "Deployment":
        found["spec"]["template"]["metadata"]["labels"] |= added
    return found


def _operations(folder: str, patch: Json) -> Json:
    """The operations of a patch, which may be in a separate file."""
    path = patch.get("path")
    (found,) = load_all((MANIFESTS / folder / path).read_text(encoding="utf-8") if path else patch["patch"])
    return found


def _meant(found: Json, target: Json) -> bool:
    group = found["apiVersion"].rpartition("/")[0]
    asked = (("kind", found["kind"]), ("name", found["metadata"]["name"]), ("group", group))
    return all(target.get(field, value) == value for field, value in asked)


def _apply(found: Json, operation: Json, condition: str) -> None:
    """Apply the patch under the condition."""
    *parents, last = operation["path"].split("/")[1:]
    target = found
    for token in parents:
        target = target[int(token)] if isinstance(target, list) else target[token]
    match operation["op"], target:
        case "add", list() if last == "-":
            target.append(Item(_released(operation["value"]), condition))
        case "add", dict():
            target[Key(last, condition)] = _released(operation["value"])
        case "remove", dict():
            target[Key(last, f"not ({condition})")] = target.pop(last)
        case "replace", dict():
            before = target.pop(last)
            target[Key(last, condition)] = operation["value"]
            target[Key(last, f"not ({condition})")] = before
        case "test", dict():
            if target[last] != operation["value"]:
                raise ValueError(f"{operation['path']} is {target[last]!r}")
        case _:
            raise ValueError(f"{operation} is not supported")


def _with_values(found: list[Json]) -> None:
    """Insert the values that users of the chart can set: image, replicas, resources, options and scheduling."""
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    spec = deployment["spec"]
    (replicas,) = (key for key in spec if isinstance(key, Key) and key.name == "replicas")
    spec[replicas] = Expression("{{ .Values.replicas }}")
    pod = spec["template"]["spec"]
    for field in ("imagePullSecrets", "nodeSelector", "tolerations"):
        pod[Key(field, f".Values.{field}")] = Expression(f"{{{{ toJson .Values.{field} }}}}")
    (container,) = pod["containers"]
    container["image"] = Expression(values.IMAGE)
    container["resources"] = Expression("{{ toJson .Values.resources }}")
    container["args"].append(Expression("@EXTRA@"))


def _text(found: Json) -> str:
    extra = "{{- range .Values.extraArgs }}\n{indent}- {{ . | quote }}\n{{- end }}"
    lines = []
    for line in template(found).splitlines():
        if line.endswith("- @EXTRA@"):
            lines.append(extra.replace("{indent}", line.removesuffix("- @EXTRA@")))
        else:
            lines.append(line)
    return "\n".join(lines).replace(NAMESPACE, "{{ .Release.Namespace }}") + "\n"
