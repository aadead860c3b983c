"""Kueue's configuration, and whether Kueue manages a namespace."""

import pytest

from tests.support.kueue_objects import CONFIG, Json, config, namespace
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import UNKNOWN, Unknown
from webhook.predict.kueue.managed import Unmanaged, configuration, manages, unmanaged

OLD = CONFIG.replace("v1beta2", "v1beta1")
SELECTOR = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n"
GATE = "featureGates: {ManagedJobsNamespaceSelectorAlwaysRespected: %s}\n"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([config(), namespace()], True, id="every namespace by default"),
        pytest.param([config()], UNKNOWN, id="namespaces unknown"),
        pytest.param([namespace()], UNKNOWN, id="no configuration"),
        pytest.param([config(SELECTOR), namespace(kueue="yes")], True, id="selected"),
        pytest.param([config(SELECTOR), namespace()], False, id="not selected"),
        pytest.param([config(SELECTOR, OLD), namespace()], UNKNOWN, id="not selected, depends on the version"),
        pytest.param([config(SELECTOR, OLD), namespace(kueue="yes")], True, id="selected, any version"),
        pytest.param([config(SELECTOR + GATE % "false"), namespace()], True, id="selector not respected"),
        pytest.param([config(SELECTOR + GATE % "true", OLD), namespace()], False, id="selector respected"),
        pytest.param([config("", CONFIG.replace("kubeflow.org/mpijob", "pod")), namespace()], False, id="no MPIJobs"),
        pytest.param([config("", CONFIG.partition("integrations")[0]), namespace()], False, id="default frameworks"),
    ],
)
def test_kueue_manages_a_namespace_according_to_its_configuration(
    objects: list[Json], expected: bool | Unknown
) -> None:
    assert manages(Snapshot(objects), "team-a") is expected


@pytest.mark.parametrize("name", ["kube-system", "kueue-system"])
def test_system_namespaces_are_not_managed_by_default(name: str) -> None:
    assert unmanaged(Snapshot([config(), namespace(name)]), name) is Unmanaged.NAMESPACE
    assert unmanaged(Snapshot([config("namespace: elsewhere\n"), namespace("elsewhere")]), "elsewhere") is not None


def test_settings_of_kueue_are_read() -> None:
    resources = """
resources:
  excludeResourcePrefixes: [example.com/, other]
  transformations: [{input: nvidia.com/mig-1g.5gb, outputs: {example.com/memory: 5}}]
  quotaCheckStrategy: IgnoreUndeclared
  deviceClassMappings: [{name: gpus, deviceClassNames: [gpu.example.com]}]
featureGates: {TopologyAwareScheduling: false}
manageJobsWithoutQueueName: true
"""
    settings = configuration(Snapshot([config(resources)]))
    assert settings is not UNKNOWN
    assert settings.excluded_prefixes == ("example.com/", "other")
    assert settings.transformed == {"nvidia.com/mig-1g.5gb"}
    assert (settings.ignores_undeclared, settings.maps_devices, settings.manages_without_queue) == (True, True, True)
    assert (settings.topology_aware, settings.selector_holds) == (False, True)


def test_missing_settings_have_kueues_defaults() -> None:
    settings = configuration(Snapshot([config("", OLD)]))
    assert settings is not UNKNOWN
    assert (settings.excluded_prefixes, settings.transformed) == ((), frozenset())
    assert (settings.ignores_undeclared, settings.maps_devices, settings.manages_without_queue) == (False, False, False)
    assert (settings.topology_aware, settings.selector_holds) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1\n---\nb: 2\n",
        "[]",
        "apiVersion: example.com/v1\n",
        CONFIG + "resources: 7\n",
        CONFIG + "managedJobsNamespaceSelector: {matchLabel: {a: b}}\n",
        CONFIG + "a: &a [*a]\n",
    ],
)
def test_invalid_configuration_is_an_error(text: str) -> None:
    """In a running service, an error makes the configuration unknown."""
    with pytest.raises(SnapshotError):
        Snapshot([config("", text)])


def test_other_config_maps_are_ignored() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}, "data": {"a": "b"}}
    assert configuration(Snapshot([other, {**other, "data": None}])) is UNKNOWN
    assert configuration(Snapshot([other, config()])) is not UNKNOWN
