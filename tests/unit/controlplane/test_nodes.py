"""Simulated nodes and the stages that KWOK plays on them."""

import yaml

from tests.controlplane.nodes import BY_HAND, KEEP_RUNNING, gpu_nodes, stages


def test_nodes_are_dealt_out_over_racks() -> None:
    nodes = gpu_nodes(5, gpus=4, racks=2)
    assert [node["metadata"]["labels"]["topology.kubernetes.io/rack"] for node in nodes] == [
        "rack-0", "rack-1", "rack-0", "rack-1", "rack-0",
    ]  # fmt: skip
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {"zone-a"}
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {"4"}
    assert len({node["metadata"]["name"] for node in nodes}) == 5


def test_nodes_without_gpus_say_nothing_of_gpus() -> None:
    (node,) = gpu_nodes(1, gpus=0, prefix="cpu")
    assert node["metadata"]["name"] == "cpu-0"
    assert "nvidia" not in str(node)
    assert set(node["status"]["allocatable"]) == {"cpu", "memory", "pods"}


def test_the_stages_get_their_exceptions() -> None:
    def stage(name: str) -> dict[str, object]:
        return {"metadata": {"name": name}, "spec": {"selector": {"matchExpressions": []}}}

    ready, complete = yaml.safe_load_all(stages(yaml.safe_dump_all([stage("pod-ready"), stage("pod-complete")])))
    for found, annotations in ((ready, [BY_HAND]), (complete, [BY_HAND, KEEP_RUNNING])):
        keys = [f'.metadata.annotations["{each}"]' for each in annotations]
        expected = [{"key": key, "operator": "DoesNotExist"} for key in keys]
        assert found["spec"]["selector"]["matchExpressions"] == expected
