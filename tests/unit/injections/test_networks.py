"""networks: attachments for the pods that compute, added to the user's own without duplicates and in the same
notation.
"""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.injecting import PATHS, Example, hold, inject, mpijob, mutate, only, policy_of
from tests.support.kueue_objects import cluster_queue, config, local_queue, namespace
from tests.support.networks import network
from tests.support.quota_objects import quota
from webhook.api.networks import NETWORKS
from webhook.cluster.snapshot import Snapshot

ID = "networks"
EXAMPLE = Example(settings={"networks": ["fabric/rail-0@rail0"]}, job=mpijob(), view=Snapshot([network("rail-0")]))
KNOWN = Snapshot([network("rail-0"), network("rail-1"), network("own", namespace="team")])
OF_WORKER = f"{PATHS['Worker']}/metadata"
OF_CONTAINER = f"{PATHS['Worker']}/spec/containers/0"
KEY = NETWORKS.replace("/", "~1")
RAILS = ["fabric/rail-0@rail0", "fabric/rail-1"]


def job(there: str | None = None, asked: str | None = None, **spec: Any) -> dict[str, Any]:
    worker = {"metadata": {"annotations": {"own": "1", NETWORKS: there}}} if there is not None else {}
    metadata = {"annotations": {"training.openshift.io/networks": asked}} if asked is not None else {}
    return mpijob(metadata=metadata, worker=worker, **spec)


def test_from_the_policy() -> None:
    added, notes = inject(ID, job(), view=KNOWN, networks=RAILS)
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/rail-0@rail0, fabric/rail-1"}}}
    assert notes == ["attached to fabric/rail-0@rail0, fabric/rail-1"]


@pytest.mark.parametrize(
    ("there", "after"),
    [
        ("", "fabric/rail-0@rail0, fabric/rail-1"),
        ("own@eth5", "own@eth5, fabric/rail-0@rail0, fabric/rail-1"),
        ("fabric/rail-1@x", "fabric/rail-1@x, fabric/rail-0@rail0"),
        ("rail-1", "rail-1, fabric/rail-0@rail0, fabric/rail-1"),
        (
            '[{"name": "own", "ips": ["10.0.0.1/24"]}]',
            '[{"name": "own", "ips": ["10.0.0.1/24"]}, {"namespace":"fabric","name":"rail-0","interface":"rail0"}, '
            '{"namespace":"fabric","name":"rail-1"}]',
        ),
    ],
)
def test_next_to_what_is_there(there: str, after: str) -> None:
    added, _ = inject(ID, job(there), view=KNOWN, networks=RAILS)
    assert added == {f"{OF_WORKER}/annotations/{KEY}": after}


@pytest.mark.parametrize("there", ["fabric/rail-0", '[{"name":"rail-0","namespace":"fabric"}]'])
def test_a_network_that_is_there_is_not_added_twice(there: str) -> None:
    assert inject(ID, job(there), view=KNOWN, networks=RAILS[:1]) == ({}, [])


def test_one_network_may_be_wanted_several_times() -> None:
    added, _ = inject(ID, job(), view=KNOWN, networks=["own@a", "team/own@b"])
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "own@a, team/own@b"}}}


@pytest.mark.parametrize(
    ("asked", "after"), [("own", "own"), ("own@a,fabric/rail-1", "own@a, fabric/rail-1"), ("", None), (" ", None)]
)
def test_networks_of_the_job_replace_those_of_the_policy(asked: str, after: str | None) -> None:
    added, _ = inject(ID, job(asked=asked), view=KNOWN, networks=RAILS)
    assert added == ({OF_WORKER: {"annotations": {NETWORKS: after}}} if after else {})


def test_a_launcher_that_computes_too() -> None:
    added, notes = inject(ID, job(runLauncherAsWorker=True), view=KNOWN, networks=RAILS[:1])
    assert set(added) == {f"{PATHS[role]}/metadata" for role in ("Launcher", "Worker")}
    assert notes == ["attached to fabric/rail-0@rail0"]


@pytest.mark.parametrize(
    ("made", "caution"),
    [
        (job(asked="fabric/rail-9"), "NetworkAttachmentDefinition fabric/rail-9 does not exist"),
        (job(asked="rail-0"), "NetworkAttachmentDefinition team/rail-0 does not exist"),
        (job("own@a", asked="rail-1@a"), "NetworkAttachmentDefinition team/rail-1 does not exist"),
        (job("own@a", asked="fabric/rail-1@a"), 'fabric/rail-1@a needs the interface a, which "own@a" uses'),
        (job("own", asked="fabric/rail-1@net1"), 'fabric/rail-1@net1 needs the interface net1, which "own" uses'),
        (job("own@net2", asked="fabric/rail-1"), 'fabric/rail-1 needs the interface net2, which "own@net2" uses'),
        (job("a/b/c", asked="own"), f"{NETWORKS} is not [namespace/]name[@interface], with commas between several"),
        (job("{", asked="own"), f"{NETWORKS} is not a list of networks in JSON"),
        (job(asked="own,"), "training.openshift.io/networks is not [namespace/]name[@interface], with commas between"),
        (job(asked='[{"name": "own"}]'), "training.openshift.io/networks is not [namespace/]name[@interface], with"),
        (job(asked="own\x1b"), "training.openshift.io/networks has a name that contains the character U+001B;"),
        (job(asked="own, " * 1000), "training.openshift.io/networks has more than 4096 characters"),
    ],
)
def test_what_cannot_be_attached(made: dict[str, Any], caution: str) -> None:
    added, notes = inject(ID, made, view=KNOWN)
    assert added == {}
    assert len(notes) == 1
    assert notes[0].startswith(caution)


def test_missing_network_does_not_prevent_other_networks() -> None:
    added, notes = inject(ID, job(), view=KNOWN, networks=["fabric/rail-9", "fabric/rail-1"])
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/rail-1"}}}
    assert notes == ["NetworkAttachmentDefinition fabric/rail-9 does not exist", "attached to fabric/rail-1"]


def test_network_of_unknown_existence_is_not_injected() -> None:
    unknown = "it is unknown whether NetworkAttachmentDefinition fabric/rail-9 exists"
    assert inject(ID, job(), networks=["fabric/rail-9"]) == ({}, [unknown])


QUEUED: dict[str, Any] = {"labels": {"kueue.x-k8s.io/queue-name": "training"}}
SRIOV = [network("rail-0", "openshift.io/rail0"), network("rail-1", "openshift.io/rail1"), network("rail-2")]


@pytest.mark.parametrize(
    ("covered", "extra", "left_out"),
    [
        (["cpu"], "", {"rail-0": "rail0", "rail-1": "rail1"}),
        (["cpu", "openshift.io/rail1"], "", {"rail-0": "rail0"}),
        (["cpu", "openshift.io/rail0", "openshift.io/rail1"], "", {}),
        (["cpu"], "resources: {excludeResourcePrefixes: [openshift.io]}\n", {}),
        (["cpu"], "resources: {quotaCheckStrategy: IgnoreUndeclared}\n", {}),
    ],
)
@pytest.mark.parametrize("metadata", [QUEUED, {}])
def test_a_network_whose_device_the_queue_does_not_count_is_left_out(
    covered: list[str], extra: str, left_out: dict[str, str], metadata: dict[str, Any]
) -> None:
    queue = local_queue("training" if metadata else "default", "gpus", namespace="team")
    behind = cluster_queue("gpus", {"default": dict.fromkeys(covered, 1000)})
    view = Snapshot([config(extra), namespace("team"), queue, behind, *SRIOV])
    wanted = [f"fabric/rail-{index}" for index in range(3)]
    added, notes = inject(ID, mpijob(metadata=metadata), view=view, networks=wanted)
    there = [name for name in wanted if name.removeprefix("fabric/") not in left_out]
    assert added.pop(OF_WORKER) == {"annotations": {NETWORKS: ", ".join(there)}}
    assert asked(added) == {f"openshift.io/{each}": "1" for each in ("rail0", "rail1") if each not in left_out.values()}
    lacking = [
        f"no fabric/{name}: ClusterQueue gpus does not cover openshift.io/{device}" for name, device in left_out.items()
    ]
    assert notes == [*lacking, f"attached to {', '.join(there)}"]


def asked(added: dict[str, Any]) -> dict[str, str]:
    """The limits of the worker's first container, which are its requests too."""
    found: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for path, value in added.items():
        *_, field, name = path.replace(f"{OF_CONTAINER}/resources", "/resources").split("/")
        if field in found:
            found[field][name.replace("~1", "/")] = value
        elif name in found:
            found[name] |= value
        else:
            for each, amounts in value.items():
                found[each] |= amounts
    assert found["limits"] == found["requests"]
    return found["limits"]


VF = "openshift.io/vf"
VFS = [network("vf-0", VF), network("vf-1", VF), network("other", "openshift.io/other"), network("plain")]


@pytest.mark.parametrize(
    ("there", "wanted", "limits", "expected"),
    [
        (None, ["fabric/vf-0"], {}, {VF: "1"}),
        (None, ["fabric/vf-0@a", "fabric/vf-0@b", "fabric/vf-1", "fabric/plain"], {}, {VF: "3"}),
        (None, ["fabric/vf-0", "fabric/other"], {"cpu": 1}, {VF: "1", "openshift.io/other": "1"}),
        # Those of the user's count, but a device that only they use is left to him.
        ("fabric/vf-0, fabric/other", ["fabric/vf-1"], {}, {VF: "2"}),
        ("fabric/vf-0", ["fabric/plain"], {}, {}),
        # It is not known what these use.
        ("nowhere/to-be-seen", ["fabric/vf-1"], {}, {}),
        (None, ["fabric/vf-0", "fabric/vf-1"], {VF: 1}, {}),
        (None, ["fabric/vf-0", "fabric/other"], {VF: 0}, {"openshift.io/other": "1"}),
    ],
)
def test_the_devices_of_the_networks_are_requested(
    there: str | None, wanted: list[str], limits: dict[str, Any], expected: dict[str, str]
) -> None:
    made = job(there)
    container = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    if limits:
        container["resources"] = {"limits": limits}
    added, _ = inject(ID, made, view=Snapshot(VFS), networks=wanted)
    assert asked({path: value for path, value in added.items() if path.startswith(OF_CONTAINER)}) == expected


def test_devices_that_the_namespace_may_never_have_leave_their_networks_out() -> None:
    view = Snapshot([*VFS, namespace("team"), quota({f"requests.{VF}": 3}, namespace="team")])
    wanted = ["fabric/vf-0", "fabric/vf-1", "fabric/plain"]
    added, notes = inject(ID, mpijob(), view=view, networks=wanted)
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/plain"}}}
    reason = f"ResourceQuota q has 3 {VF}, and the job would need 4"
    assert notes == [f"no fabric/vf-0 and 1 more: {reason}", "attached to fabric/plain"]


def test_with_more_networks_of_rdma_the_devices_of_all_are_requested() -> None:
    policy = policy_of({ID: {"networks": ["fabric/vf-0"]}, "rdma": {"always": True, "networks": ["fabric/vf-1"]}})
    made = mpijob(metadata={"annotations": {"training.openshift.io/rdma": "true"}})
    decision = hold(made, policy, view=Snapshot(VFS))
    assert decision.document is not None
    worker = decision.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert worker["metadata"]["annotations"][NETWORKS] == "fabric/vf-0, fabric/vf-1"
    assert worker["spec"]["containers"][0]["resources"] == {"limits": {VF: "2"}, "requests": {VF: "2"}}


def test_in_no_queue_and_in_one_that_is_not_known() -> None:
    assert inject(ID, mpijob(), view=Snapshot(SRIOV), networks=RAILS)[1] == [f"attached to {', '.join(RAILS)}"]
    _, notes = inject(ID, mpijob(metadata=QUEUED), view=Snapshot(SRIOV), networks=["fabric/rail-0", "fabric/rail-2"])
    assert notes == [
        'no fabric/rail-0: the resources of the ClusterQueue of "training" are unknown',
        "attached to fabric/rail-2",
    ]


TEXTS = st.text(st.sampled_from('ab/@, \x00\x1b\u202e\ud83d\ude00\n"[{'), max_size=40) | st.text(max_size=40)


@given(there=TEXTS, interface=TEXTS, asked=TEXTS, in_json=st.booleans())
@example(there="s\x1b[31m\u202e", interface="rail0", asked="fabric/rail-0@rail0", in_json=True)
def test_what_users_write_leaves_warnings_printable(there: str, interface: str, asked: str, in_json: bool) -> None:
    written = json.dumps([{"name": there, "interface": interface}]) if in_json else there
    for policy in (only(ID), only("rdma", always=True, resource="rdma/ib", perPod=1, networks=RAILS)):
        decision = mutate(job(written, asked=asked), policy, view=KNOWN)
        assert all(note.isprintable() for note in (*decision.notes, *decision.warnings))


def test_long_names_and_lists_leave_room_for_the_message() -> None:
    long = f"{'n' * 63}/{'x' * 63}"
    _, (note,) = inject(ID, job(asked=long), view=KNOWN)
    assert note.endswith(" does not exist")
    assert len(f"{ID}: {note}") <= 120
    many = [f"fabric/rail-{index}" for index in range(64)]
    view = Snapshot([network(f"rail-{index}") for index in range(64)])
    _, (note,) = inject(ID, job(), view=view, networks=many)
    assert note == "attached to fabric/rail-0, fabric/rail-1, fabric/rail-2, fabric/rail-3, fabric/rail-4 and 59 more"


@pytest.mark.parametrize(
    ("there", "later", "after"),
    [
        ("own", "own", "own, fabric/rail-1"),
        ("own", None, "fabric/rail-1"),
        ("own", "", "fabric/rail-1"),
        ("own", "other", "other, fabric/rail-1"),
        ("own", "own@eth1", "own@eth1, fabric/rail-1"),
        ("own", "fabric/rail-1", "fabric/rail-1"),
        ("own", "own2", "own2, fabric/rail-1"),
        ("own", "[", "["),
        ('[{"name":"own"}]', '[{"name":"own"}]', '[{"name":"own"}, {"namespace":"fabric","name":"rail-1"}]'),
        ('[{"name":"own"}]', '[{"name":"ow"}]', '[{"name":"ow"}, {"namespace":"fabric","name":"rail-1"}]'),
    ],
)
def test_an_update_restores_it_next_to_what_the_user_has_now(there: str, later: str | None, after: str) -> None:
    policy = only(ID, networks=["fabric/rail-1"])
    stored = mutate(job(there), policy, view=KNOWN).document
    applied = mutate(job(later), policy, "UPDATE", view=KNOWN, stored=stored).document
    assert applied is not None
    assert applied["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"][NETWORKS] == after


def test_networks_without_a_device_request_nothing() -> None:
    assert inject(ID, job(), view=KNOWN) == ({}, [])
    assert inject(ID, job("a/b/c"), view=KNOWN) == ({}, [])
