"""A job's own metadata in a file, as the API server validates it before any rule is asked.

Nothing here is in the schema of MPIJobs: the API server holds it against every object.
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/api/validation/objectmeta.go
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook.api import names
from webhook.api.crd_schema import such_as
from webhook.predict.pod_template import Kind, texts
from webhook.predict.pod_template.fault import Faults, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels
from webhook.rules import CauseReason, Violation

_OF_OWNERS: Final = ("apiVersion", "kind", "name", "uid")


def judge(metadata: Any) -> list[Violation]:
    """What the API server refuses; values of a wrong type are the schema's to refuse, and nothing here."""
    if not isinstance(metadata, dict):
        return []
    found = Faults()
    _name(metadata, found)
    check_labels(_texts(metadata.get("labels")), "metadata.labels", found)
    check_annotations(_texts(metadata.get("annotations")), "metadata.annotations", found)
    for index, finalizer in enumerate(_list(metadata.get("finalizers"))):
        if isinstance(finalizer, str) and (problem := names.label_key_problem(finalizer)):
            found.add(f"metadata.finalizers[{index}]", f'"{shown(finalizer)}" {problem}', "Correct the finalizer.")
    _owners(_list(metadata.get("ownerReferences")), found)
    return [Violation(one.path, one.message, one.fix, CauseReason[one.kind.name]) for one in found]


def _name(metadata: Mapping[str, Any], found: Faults) -> None:
    prefix = metadata.get("generateName")
    made = f"{prefix[: names.GENERATED_BASE_MAX_LENGTH]}x" if isinstance(prefix, str) and prefix else None
    name = metadata.get("name") or None
    for field, written, checked in (("name", name, name), ("generateName", prefix, made if name is None else None)):
        if isinstance(checked, str) and (problem := names.dns_1123_subdomain_problem(checked)):
            meant = names.corrected(checked, names.dns_1123_subdomain_problem)
            fix = f"Write {meant.removesuffix('' if written is checked else 'x')}." if meant else texts.SPELLING
            found.add(f"metadata.{field}", f'"{shown(str(written))}" {problem}', fix)
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace and (problem := names.dns_1123_label_problem(namespace)):
        found.add(
            "metadata.namespace",
            f'"{shown(namespace)}" {problem}',
            f"Write {names.corrected(namespace, names.dns_1123_label_problem) or 'one'}, or another that exists.",
        )


def _owners(owners: list[Any], found: Faults) -> None:
    controllers = 0
    for index, owner in enumerate(owners):
        if not isinstance(owner, dict):
            continue
        where = f"metadata.ownerReferences[{index}]"
        for field in _OF_OWNERS:
            if owner.get(field) == "":
                found.add(f"{where}.{field}", "is empty", such_as(field), Kind.REQUIRED)
        if str(owner.get("apiVersion")).count("/") > 1:
            found.add(f"{where}.apiVersion", 'contains more than one "/"', "Write it as apps/v1 or v1.")
        controllers += owner.get("controller") is True
        if controllers > 1 and owner.get("controller") is True:
            found.add(f"{where}.controller", "is true, but another owner is the controller", "Remove it.")


def _texts(value: Any) -> dict[str, str]:
    """The entries that are text."""
    entries = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in entries if isinstance(text, str)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
