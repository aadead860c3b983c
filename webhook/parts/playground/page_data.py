"""The content of the page except verdicts: examples, explanations, and schemas for completion."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from webhook import __version__
from webhook.cli import explanations, job_document_schema
from webhook.cli.policy import document_schema
from webhook.parts.playground.verdicts import CLUSTER, JOB, POLICY
from webhook.policy.in_force import PolicySet

HERE: Final = Path(__file__).parent
_CHECKOUT: Final = HERE.parents[2] / "manifests"
_INSTALLED: Final = HERE.parents[1]
# Policies that work without other objects in the cluster.
_READY_MADE: Final = ("tier-base", "hpc-cpu", "restricted-openshift")

Json = dict[str, Any]


def page_data() -> Json:
    return {
        "version": __version__,
        "examples": {
            JOB: [*_examples(_folder("examples").glob("*.yaml"))],
            POLICY: [*_examples(_folder("policies") / f"{name}.yaml" for name in _READY_MADE)],
            CLUSTER: [*_examples((HERE / "clusters").glob("*.yaml"))],
        },
        "schemas": {
            JOB: job_document_schema.json_schema(PolicySet().for_any_namespace()),
            POLICY: document_schema.json_schema(),
        },
        "explanations": {
            entry.id: {"summary": entry.summary, "explanation": entry.explanation, "policy": entry.policy}
            for entry in reversed(explanations.entries())
        },
    }


def _folder(name: str) -> Path:
    return next(folder / name for folder in (_CHECKOUT, _INSTALLED) if (folder / name).is_dir())


def _examples(paths: Any) -> Iterator[Mapping[str, str]]:
    for path in sorted(paths):
        name = path.stem.replace("bad-", "bad:-", 1).replace("-", " ").capitalize()
        yield {"name": name, "text": path.read_text(encoding="utf-8")}
