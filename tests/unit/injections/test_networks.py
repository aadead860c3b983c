"""networks: attachments for the pods that compute, beside those that the user wrote, each once and in his notation."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.injecting import PATHS, Example, inject, mpijob, mutate, only
from tests.support.kueue_objects import cluster_queue, config, local_queue, namespace
from tests.support.networks import network
from webhook.api.networks import NETWORKS
from webhook.cluster.snapshot import Snapshot

ID = "networks"
EXAMPLE = Example(settings={"networks": ["fabric/rail-0@rail0"]}, job=mpijob(), view=Snapshot([network("rail-0")]))
KNOWN = Snapshot([network("rail-0"), network("rail-1"), network("own", namespace="team")])
OF_WORKER = f"{PATHS['Worker']}/metadata"
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
def test_beside_what_is_there(there: str, after: str) -> None:
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
def test_what_the_job_lists_takes_the_place_of_the_policy_s_list(asked: str, after: str | None) -> None:
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
        (job("own@a", asked="fabric/rail-1@a"), 'fabric/rail-1@a would have the interface a, which "own@a" has'),
        (job("own", asked="fabric/rail-1@net1"), 'fabric/rail-1@net1 would have the interface net1, which "own" has'),
        (job("own@net2", asked="fabric/rail-1"), 'fabric/rail-1 would have the interface net2, which "own@net2" has'),
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


def test_a_network_that_does_not_exist_keeps_no_other_away() -> None:
    added, notes = inject(ID, job(), view=KNOWN, networks=["fabric/rail-9", "fabric/rail-1"])
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/rail-1"}}}
    assert notes == ["NetworkAttachmentDefinition fabric/rail-9 does not exist", "attached to fabric/rail-1"]


def test_a_network_of_which_nobody_knows_whether_it_exists_is_left_out() -> None:
    unknown = "whether there is a NetworkAttachmentDefinition fabric/rail-9 is not known"
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
    assert added == {OF_WORKER: {"annotations": {NETWORKS: ", ".join(there)}}}
    lacking = [
        f"no fabric/{name}: ClusterQueue gpus does not cover openshift.io/{device}" for name, device in left_out.items()
    ]
    assert notes == [*lacking, f"attached to {', '.join(there)}"]


def test_in_no_queue_and_in_one_that_is_not_known() -> None:
    assert inject(ID, mpijob(), view=Snapshot(SRIOV), networks=RAILS)[1] == [f"attached to {', '.join(RAILS)}"]
    _, notes = inject(ID, mpijob(metadata=QUEUED), view=Snapshot(SRIOV), networks=["fabric/rail-0", "fabric/rail-2"])
    assert notes == [
        'no fabric/rail-0: what the ClusterQueue of "training" covers is not known',
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


def test_long_names_and_lists_leave_room_for_what_is_said_of_them() -> None:
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
def test_an_update_restores_it_beside_what_the_user_has_now(there: str, later: str | None, after: str) -> None:
    policy = only(ID, networks=["fabric/rail-1"])
    stored = mutate(job(there), policy, view=KNOWN).document
    applied = mutate(job(later), policy, "UPDATE", view=KNOWN, stored=stored).document
    assert applied is not None
    assert applied["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"][NETWORKS] == after


def test_nothing_is_asked() -> None:
    assert inject(ID, job(), view=KNOWN) == ({}, [])
    assert inject(ID, job("a/b/c"), view=KNOWN) == ({}, [])


@pytest.mark.parametrize("name", ["", "a,b", "A", "a/b/c", "a@", '[{"name":"a"}]'])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValidationError):
        only(ID, networks=[name])
