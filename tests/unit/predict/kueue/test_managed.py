"""Whether Kueue manages a namespace, from its configuration."""

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
        pytest.param([config(SELECTOR + GATE % "false"), namespace()], True, id="not selected, but that is off"),
        pytest.param([config(SELECTOR + GATE % "true", OLD), namespace()], False, id="not selected, and that is on"),
        pytest.param([config("", CONFIG.replace("kubeflow.org/mpijob", "pod")), namespace()], False, id="no MPIJobs"),
        pytest.param([config("", CONFIG.partition("integrations")[0]), namespace()], False, id="default frameworks"),
    ],
)
def test_manages(objects: list[Json], expected: bool | Unknown) -> None:
    assert manages(Snapshot(objects), "team-a") is expected


@pytest.mark.parametrize("name", ["kube-system", "kueue-system"])
def test_the_default_leaves_out_the_system(name: str) -> None:
    assert unmanaged(Snapshot([config(), namespace(name)]), name) is Unmanaged.NAMESPACE
    assert unmanaged(Snapshot([config("namespace: elsewhere\n"), namespace("elsewhere")]), "elsewhere") is not None


def test_what_counts() -> None:
    resources = """
resources:
  excludeResourcePrefixes: [example.com/, other]
  transformations: [{input: nvidia.com/mig-1g.5gb, outputs: {example.com/memory: 5}}]
  quotaCheckStrategy: IgnoreUndeclared
  deviceClassMappings: [{name: gpus, deviceClassNames: [gpu.example.com]}]
featureGates: {TopologyAwareScheduling: false}
manageJobsWithoutQueueName: true
"""
    found = configuration(Snapshot([config(resources)]))
    assert found is not UNKNOWN
    assert found.excluded_prefixes == ("example.com/", "other")
    assert found.transformed == {"nvidia.com/mig-1g.5gb"}
    assert (found.ignores_undeclared, found.maps_devices, found.manages_without_queue) == (True, True, True)
    assert (found.topology_aware, found.selector_holds) == (False, True)


def test_without_resources() -> None:
    found = configuration(Snapshot([config("", OLD)]))
    assert found is not UNKNOWN
    assert (found.excluded_prefixes, found.transformed) == ((), frozenset())
    assert (found.ignores_undeclared, found.maps_devices, found.manages_without_queue) == (False, False, False)
    assert (found.topology_aware, found.selector_holds) == (None, None)


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
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    """For a running service it makes the configuration unknown."""
    with pytest.raises(SnapshotError):
        Snapshot([config("", text)])


def test_other_config_maps_do_not_count() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}, "data": {"a": "b"}}
    assert configuration(Snapshot([other, {**other, "data": None}])) is UNKNOWN
    assert configuration(Snapshot([other, config()])) is not UNKNOWN
