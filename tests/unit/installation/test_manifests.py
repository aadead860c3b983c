"""The manifests match the code. tests/integration/test_manifests.py applies the manifests to a cluster."""

import re
from typing import Any

import pytest

from tests.support.paths import MANIFESTS
from tools import manifests
from webhook import __version__
from webhook.api.yaml import load_all
from webhook.cli.main import main
from webhook.cluster.resources import watched_resources
from webhook.installation import components, registration
from webhook.kit.optional_parts import ComponentRights
from webhook.parts.standing_audit.metrics import AUDIT_METRICS
from webhook.server.metrics import METRICS

OVERLAYS = ("default", "cert-manager", "openshift")
COMPONENTS = {path.name for path in (MANIFESTS / "components").iterdir()}


def documents(path: str) -> list[Any]:
    return load_all((MANIFESTS / path).read_text(encoding="utf-8"))


def deployment() -> Any:
    (document,) = documents("base/deployment.yaml")
    return document


def arguments(component: str = "") -> list[str]:
    """The arguments of the container, with the arguments that a component adds."""
    args: list[str] = list(deployment()["spec"]["template"]["spec"]["containers"][0]["args"])
    if component:
        patches = documents(f"components/{component}/kustomization.yaml")[0].get("patches", ())
        for patch in (each for each in patches if "patch" in each):
            operations = load_all(patch["patch"])[0]
            args += [o["value"] for o in operations if o["path"].endswith("/args/-")]
    return args


@pytest.mark.parametrize("name", sorted(manifests.files()))
def test_generated_files_match_the_code(name: str) -> None:
    written = (MANIFESTS / name).read_text(encoding="utf-8")
    assert written == manifests.files()[name], "run `make manifests`"


def test_service_may_read_exactly_the_watched_resources() -> None:
    roles = [
        rule
        for role in documents("base/cluster-view.yaml")
        for rule in role["rules"]
        for rule in [
            (group, plural, tuple(rule.get("resourceNames", ())), role["kind"])
            for group in rule["apiGroups"]
            for plural in rule["resources"]
        ]
    ]
    expected = {
        (
            resource.api_group,
            resource.plural,
            (resource.field_selector.removeprefix("metadata.name="),) if resource.field_selector else (),
            "Role" if resource.place and resource.place.value == "own" else "ClusterRole",
        )
        for resource in watched_resources()
    }
    assert set(roles) == expected
    assert len(roles) == len(expected)
    assert all("secrets" not in rule for rule in roles)


@pytest.mark.parametrize("rights", components.COMPONENTS, ids=lambda rights: rights.component)
def test_component_adds_an_option_and_its_rights(rights: ComponentRights) -> None:
    (kustomization,) = documents(f"components/{rights.component}/kustomization.yaml")
    assert rights.option in arguments(rights.component)
    assert rights.option not in arguments()
    assert "rbac.yaml" in kustomization["resources"]


@pytest.mark.parametrize("component", ["", *sorted(COMPONENTS)])
def test_arguments_of_the_container_are_valid(component: str) -> None:
    """click parses the arguments, and `serve` is not run."""
    name, *flags = arguments(component)
    context = main.commands[name].make_context(name, list(flags))
    given = {parameter for parameter in context.params if context.get_parameter_source(parameter).name == "COMMANDLINE"}  # type: ignore[union-attr]
    assert len(given) == len(flags)


def test_ports_match_the_command_line() -> None:
    command = main.commands["serve"]
    params = command.make_context("serve", arguments()[1:]).params
    container = deployment()["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"review": params["listen"][1], "ops": params["ops_listen"][1]}
    (service,) = documents("base/service.yaml")
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    called = {
        hook["clientConfig"]["service"]["port"] for w in manifests.webhooks() for hook in w["webhooks"]
    }  # the ports that the API server calls
    assert called == {port["port"] for port in service["spec"]["ports"] if port["targetPort"] == "review"}


def test_token_lasts_one_hour_and_egress_is_limited_to_api_servers() -> None:
    (volume,) = deployment()["spec"]["template"]["spec"]["volumes"]
    (token,) = [each["serviceAccountToken"] for each in volume["projected"]["sources"] if "serviceAccountToken" in each]
    assert token["expirationSeconds"] == 3600
    ours, others = documents("base/network-policy.yaml")
    assert ours["spec"]["egress"] == [{"ports": [{"port": port, "protocol": "TCP"} for port in (443, 6443)]}]
    assert (others["spec"]["podSelector"], others["spec"].get("egress")) == ({}, None)
    assert {"Egress"} <= {*ours["spec"]["policyTypes"]} & {*others["spec"]["policyTypes"]}


def test_grace_period_is_longer_than_the_drain() -> None:
    params = main.commands["serve"].make_context("serve", arguments()[1:]).params
    pod = deployment()["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= params["drain_seconds"] + params["timeout"] + 10


def test_version_and_image_are_set_in_one_place() -> None:
    (base,) = documents("base/kustomization.yaml")
    assert base["images"] == [{"name": "mpijob-webhook", "newTag": __version__}]
    (labels,) = base["labels"]
    assert labels["pairs"]["app.kubernetes.io/version"] == __version__
    named = {
        str(path.relative_to(MANIFESTS))
        for path in MANIFESTS.rglob("*.yaml")
        if __version__ in re.findall(r"\d+\.\d+\.\d+", path.read_text(encoding="utf-8"))
    }
    assert named - {"chart/Chart.yaml"} == {"base/kustomization.yaml"}, "the version of the chart is generated"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlay_mentions_every_optional_component(overlay: str) -> None:
    text = (MANIFESTS / "overlays" / overlay / "kustomization.yaml").read_text(encoding="utf-8")
    named = set(re.findall(r"\.\./\.\./components/([\w-]+)", text))
    assert named <= COMPONENTS
    optional = COMPONENTS - {"self-managed-certificates", "certificate-files", "hooks-cert-manager", "hooks-openshift"}
    assert optional <= named or "as in ../default" in text


def test_no_overlay_includes_the_hooks() -> None:
    registering = {
        path.relative_to(MANIFESTS).parts[:2]
        for path in (MANIFESTS / folder for folder in ("base", "overlays", "components"))
        for path in path.rglob("*.yaml")
        if any(each.get("kind") in registration.RESOURCES for each in load_all(path.read_text()) if type(each) is dict)
    }
    assert registering == {("components", "hooks")}
    for overlay in OVERLAYS:
        chosen = documents(f"overlays/{overlay}/kustomization.yaml")[0]["components"]
        assert not [each for each in chosen if "/hooks" in each]


def test_generating_spare_keys_does_not_trigger_autoscaling() -> None:
    """Otherwise each new replica would generate spare keys too, and trigger the next replica."""
    (component,) = documents("components/hpa/kustomization.yaml")
    (rate,) = re.findall(r"--ssh-keys-rate=([\d.]+)", component["patches"][0]["patch"])
    (autoscaler,) = documents("components/hpa/autoscaler.yaml")
    target = autoscaler["spec"]["metrics"][0]["resource"]["target"]["averageValue"]
    half_a_core = 500
    assert float(rate) * half_a_core <= int(target.removesuffix("m")) / 4


def test_alerts_use_existing_labels() -> None:
    """test_dashboard.py tests that the metrics of the alerts exist."""
    ours = {metric.name: set(metric.labels) for metric in (*METRICS, *AUDIT_METRICS)}
    (rule,) = documents("components/monitoring/alerts.yaml")
    alerts = [alert for group in rule["spec"]["groups"] for alert in group["rules"]]
    assert len({alert["alert"] for alert in alerts}) == len(alerts)
    for alert in alerts:
        for name, selectors in re.findall(r"(mpijob_webhook_\w+)\{([^}]*)\}", alert["expr"]):
            assert set(re.findall(r"(\w+)[!=]", selectors)) <= ours[name]
        grouped = {label for labels in re.findall(r"by \(([^)]*)\)", alert["expr"]) for label in labels.split(", ")}
        shown = set(re.findall(r"\$labels\.(\w+)", str(alert["annotations"])))
        assert shown <= grouped, alert["alert"]
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
        assert alert["labels"]["severity"] in {"warning", "critical"}


def test_alerts_match_the_names_of_the_hooks() -> None:
    text = (MANIFESTS / "components/monitoring/alerts.yaml").read_text(encoding="utf-8")
    patterns = set(re.findall(r'name=~"([^"]+)"', text))
    hooks = [hook["name"] for configuration in manifests.webhooks() for hook in configuration["webhooks"]]
    assert len(patterns) == 1
    assert all(re.fullmatch(pattern, hook) for pattern in patterns for hook in hooks)
