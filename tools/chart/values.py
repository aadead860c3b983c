"""The values of the chart: descriptions, defaults and schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from tests.support.paths import MANIFESTS
from tools.chart.sources import CERTIFICATES, camel, components
from webhook.api import yaml
from webhook.api.yaml import load_all
from webhook.installation import registration

Json = Any

NOTICE: Final = "# Written by `make chart`: changes here are lost. Give values of your own by --values or --set.\n"
IMAGE: Final = (
    '"{{ required "image.repository is empty: name the image, with its registry" .Values.image.repository }}'
    "{{ with .Values.image.digest }}@{{ . }}{{ else }}:"
    '{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"'
)
# Without a cluster, `lookup` finds no namespace. If the hooks exist, an upgrade may repair the service.
NO_REPLICA_YET: Final = """\
{{- if and .Values.components.hooks (lookup "v1" "Namespace" "" "kube-system") }}
{{- $hooks := lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "NAME" }}
{{- $service := lookup "apps/v1" "Deployment" .Release.Namespace "mpijob-webhook" }}
{{- if not (or $hooks (dig "status" "readyReplicas" 0 $service)) }}
{{- fail "components.hooks: no replica is ready. Install without it first, or no MPIJob could be created" }}
{{- end }}
{{- end }}
""".replace("NAME", registration.NAME)
NOTES: Final = """\
mpijob-webhook {{ .Chart.AppVersion }} is in namespace {{ .Release.Namespace }}, whose own MPIJobs it never sees.
{{- if not .Values.components.hooks }}

It sees no job yet. When a replica is ready, have the API server send it all other MPIJobs:

  kubectl rollout status deployment mpijob-webhook -n {{ .Release.Namespace }}
  helm upgrade mpijob-webhook CHART -n {{ .Release.Namespace }} --reuse-values --set components.hooks=true
{{- end }}

Look at the whole installation, and write a policy:

  mpijob-webhook doctor --policy-namespace {{ .Release.Namespace }}
  mpijob-webhook policy new
{{- if not .Values.components.policies }}

No policy is installed: the built-in one counts. It refuses what never runs. To look first and refuse nothing, put
manifests/policies/audit-only.yaml into this namespace.
{{- end }}
{{- if eq .Values.certificates "certManager" }}

Its certificate is made by cert-manager: kubectl get certificate -n {{ .Release.Namespace }}
{{- end }}
"""


@dataclass(frozen=True)
class Value:
    default: Json
    description: str
    schema: Mapping[str, Json]


_TEXT: Final = {"type": "string"}
# These values are in quotes in the template.
_IMAGE: Final = "^([A-Za-z0-9][A-Za-z0-9._:/-]*)?$"
_TAG: Final = "^[A-Za-z0-9._-]*$"
_SWITCH: Final = {"type": "boolean"}
_AMOUNTS: Final = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_FORM: Final = {"type": "object", "additionalProperties": False}


def text() -> str:
    return NOTICE + "".join(_lines(_values()))


def schema() -> Json:
    """The schema of the values. helm rejects unknown values."""
    properties = {name: _schema(value) for name, value in _values().items()}
    # Helm always passes `global`. A parent chart can disable this chart by `enabled`
    # (`condition: mpijob-webhook.enabled`).
    properties |= {"enabled": _SWITCH, "global": {}}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_FORM, "properties": properties}


def _values() -> dict[str, Value | dict[str, Value]]:
    (deployment,) = load_all((MANIFESTS / "base" / "deployment.yaml").read_text(encoding="utf-8"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {
        "image": {
            "repository": Value("", "Where the image is, with its registry: required.", {"pattern": _IMAGE, **_TEXT}),
            "tag": Value("", "Empty for the version of the chart.", {"pattern": _TAG, **_TEXT}),
            "digest": Value("", "In place of the tag: sha256:...", {"pattern": "^(sha256:[0-9a-f]{64})?$", **_TEXT}),
        },
        "imagePullSecrets": Value(
            [],
            "As in a pod: [{name: registry-pull}].",
            {"type": "array", "items": {**_FORM, "required": ["name"], "properties": {"name": _TEXT}}},
        ),
        "replicas": Value(
            deployment["spec"]["replicas"],
            "Number of replicas. With components.hpa the autoscaler sets it.",
            {"type": "integer", "minimum": 1},
        ),
        "resources": Value(
            container["resources"],
            "Resources of each replica. A CPU limit would delay every kubectl command.",
            {**_FORM, "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS}},
        ),
        "certificates": Value(
            "selfManaged",
            "Who makes the certificates: the service itself (selfManaged; Kubernetes 1.28 or newer), cert-manager"
            " (certManager), or OpenShift's service CA (openshift).",
            {"enum": [*CERTIFICATES]},
        ),
        "extraArgs": Value(
            [],
            "More options of `serve`, as --kueue-namespace=kueue.",
            {"type": "array", "items": {"type": "string", "pattern": "^--"}},
        ),
        "nodeSelector": Value(
            {}, "Labels of the nodes for the replicas.", {"type": "object", "additionalProperties": _TEXT}
        ),
        "tolerations": Value([], "As in a pod.", {"type": "array", "items": {"type": "object"}}),
        "components": {camel(name): Value(False, _comment(name), _SWITCH) for name in components()},
    }


def _comment(component: str) -> str:
    """The comment at the top of a component."""
    lines = (MANIFESTS / "components" / component / "kustomization.yaml").read_text(encoding="utf-8").splitlines()
    return " ".join(
        line.removeprefix("# ") for line in lines[: lines.index("apiVersion: kustomize.config.k8s.io/v1alpha1")]
    )


def _lines(values: Mapping[str, Value | dict[str, Value]], indent: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:\n"
            yield from _lines(value, indent + "  ")
            continue
        yield from (f"{indent}# {line}\n" for line in wrap(value.description, 110, break_on_hyphens=False))
        block = isinstance(value.default, dict) and value.default
        dumped = yaml.dump({name: value.default}) if block else f"{name}: {yaml.dump_inline(value.default)}"
        yield from (f"{indent}{line}\n" for line in dumped.rstrip().splitlines())


def _schema(value: Value | dict[str, Value]) -> Json:
    if isinstance(value, Value):
        return {"description": value.description, **value.schema}
    return {**_FORM, "properties": {name: _schema(each) for name, each in value.items()}}
