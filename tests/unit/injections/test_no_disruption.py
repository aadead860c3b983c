from tests.support.injecting import PATHS, Example, hold, inject, mpijob

ID = "no-disruption"
BOTH = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
EXAMPLE = Example({"enabled": True})
ON = {"enabled": True}


def annotated(role, **annotations):
    return mpijob(**{role: {"metadata": {"annotations": annotations}}})


def test_injection_is_off_by_default():
    assert ID not in hold(mpijob()).authors


def test_launcher_and_workers_are_annotated():
    added, notes = inject(ID, mpijob(), **ON)
    assert {path.partition("/metadata")[0] for path in added} == {PATHS["Launcher"], PATHS["Worker"]}
    assert notes == ["autoscalers leave the nodes of Launcher and Worker alone"]
    added, _ = inject(ID, annotated("worker", a="b"), **ON)
    where = f"{PATHS['Worker']}/metadata/annotations"
    for key, value in BOTH.items():
        assert added[f"{where}/{key.replace('/', '~1')}"] == value


def test_annotation_of_the_user_stays():
    job = annotated("worker", **dict.fromkeys(BOTH, "maybe"))
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"] = {"annotations": dict(BOTH)}
    assert inject(ID, job, **ON) == ({}, [])
