"""The injection `networks` attaches pods with ranks to networks. It keeps the user's networks and their notation."""

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
KEY = NETWORKS.replace("/", "~1")
RAILS = ["fabric/rail-0@rail0", "fabric/rail-1"]


def job(existing: str | None = None, requested: str | None = None, **spec: Any) -> dict[str, Any]:
    worker = {"metadata": {"annotations": {"own": "1", NETWORKS: existing}}} if existing is not None else {}
    metadata = {"annotations": {"training.openshift.io/networks": requested}} if requested is not None else {}
    return mpijob(metadata=metadata, worker=worker, **spec)


def injected(
    submitted: dict[str, Any], view: Snapshot, networks: list[str]
) -> tuple[str, dict[str, dict[str, Any]], list[str]]:
    """The networks of the workers, the resources of their first container, and the notes."""
    decision = hold(submitted, only(ID, networks=networks), view=view)
    assert decision.document is not None
    worker = decision.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    resources = worker["spec"]["containers"][0].get("resources", {})
    notes = [note.removeprefix(f"{ID}: ") for note in decision.notes]
    return worker["metadata"]["annotations"][NETWORKS], resources, notes


def test_networks_of_the_policy_are_attached() -> None:
    added, notes = inject(ID, job(), view=KNOWN, networks=RAILS)
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/rail-0@rail0, fabric/rail-1"}}}
    assert notes == ["attached to fabric/rail-0@rail0, fabric/rail-1"]


@pytest.mark.parametrize(
    ("existing", "after"),
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
def test_networks_of_the_policy_are_added_to_the_networks_of_the_user(existing: str, after: str) -> None:
    added, _ = inject(ID, job(existing), view=KNOWN, networks=RAILS)
    assert added == {f"{OF_WORKER}/annotations/{KEY}": after}


@pytest.mark.parametrize("existing", ["fabric/rail-0", '[{"name":"rail-0","namespace":"fabric"}]'])
def test_network_of_the_user_is_not_added_again(existing: str) -> None:
    assert inject(ID, job(existing), view=KNOWN, networks=RAILS[:1]) == ({}, [])


def test_network_may_be_attached_several_times() -> None:
    added, _ = inject(ID, job(), view=KNOWN, networks=["own@a", "team/own@b"])
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "own@a, team/own@b"}}}


@pytest.mark.parametrize(
    ("requested", "after"), [("own", "own"), ("own@a,fabric/rail-1", "own@a, fabric/rail-1"), ("", None), (" ", None)]
)
def test_networks_of_the_job_replace_the_networks_of_the_policy(requested: str, after: str | None) -> None:
    added, _ = inject(ID, job(requested=requested), view=KNOWN, networks=RAILS)
    assert added == ({OF_WORKER: {"annotations": {NETWORKS: after}}} if after else {})


def test_launcher_that_is_a_worker_is_attached() -> None:
    added, notes = inject(ID, job(runLauncherAsWorker=True), view=KNOWN, networks=RAILS[:1])
    assert set(added) == {f"{PATHS[role]}/metadata" for role in ("Launcher", "Worker")}
    assert notes == ["attached to fabric/rail-0@rail0"]


@pytest.mark.parametrize(
    ("submitted", "caution"),
    [
        (job(requested="fabric/rail-9"), "NetworkAttachmentDefinition fabric/rail-9 does not exist"),
        (job("own@a", requested="rail-1@a"), "NetworkAttachmentDefinition team/rail-1 does not exist"),
        (job("own@a", requested="fabric/rail-1@a"), 'fabric/rail-1@a needs the interface a, which "own@a" uses'),
        (job("a/b/c", requested="own"), f"{NETWORKS} is not [namespace/]name[@interface], with commas between several"),
        (
            job(requested="own,"),
            "training.openshift.io/networks is not [namespace/]name[@interface], with commas between",
        ),
        (job(requested="own\x1b"), "training.openshift.io/networks has a name that contains the character U+001B;"),
        (job(requested="own, " * 1000), "training.openshift.io/networks has more than 4096 characters"),
    ],
)
def test_network_that_cannot_be_attached_is_reported(submitted: dict[str, Any], caution: str) -> None:
    added, notes = inject(ID, submitted, view=KNOWN)
    assert added == {}
    assert len(notes) == 1
    assert notes[0].startswith(caution)


def test_missing_network_does_not_prevent_other_networks() -> None:
    added, notes = inject(ID, job(), view=KNOWN, networks=["fabric/rail-9", "fabric/rail-1"])
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/rail-1"}}}
    assert notes == ["NetworkAttachmentDefinition fabric/rail-9 does not exist", "attached to fabric/rail-1"]


def test_unknown_network_is_not_attached() -> None:
    unknown = "it is unknown whether NetworkAttachmentDefinition fabric/rail-9 exists"
    assert inject(ID, job(), networks=["fabric/rail-9"]) == ({}, [unknown])


QUEUED: dict[str, Any] = {"labels": {"kueue.x-k8s.io/queue-name": "training"}}
SRIOV = [network("rail-0", "openshift.io/rail0"), network("rail-1", "openshift.io/rail1"), network("rail-2")]


@pytest.mark.parametrize(
    ("covered", "left_out"),
    [
        (["cpu"], {"rail-0": "rail0", "rail-1": "rail1"}),
        (["cpu", "openshift.io/rail1"], {"rail-0": "rail0"}),
        (["cpu", "openshift.io/rail0", "openshift.io/rail1"], {}),
    ],
)
@pytest.mark.parametrize("metadata", [QUEUED, {}])
def test_network_with_a_device_that_the_queue_does_not_cover_is_left_out(
    covered: list[str], left_out: dict[str, str], metadata: dict[str, Any]
) -> None:
    queue = local_queue("training" if metadata else "default", "gpus", namespace="team")
    target = cluster_queue("gpus", {"default": dict.fromkeys(covered, 1000)})
    view = Snapshot([config(), namespace("team"), queue, target, *SRIOV])
    networks = [f"fabric/rail-{index}" for index in range(3)]
    attached, resources, notes = injected(mpijob(metadata=metadata), view, networks)
    assert attached == ", ".join(name for name in networks if name.removeprefix("fabric/") not in left_out)
    devices = {f"openshift.io/{rail}": "1" for rail in ("rail0", "rail1") if rail not in left_out.values()}
    assert resources == ({"limits": devices, "requests": devices} if devices else {})
    lacking = [
        f"no fabric/{name}: ClusterQueue gpus does not cover openshift.io/{device}" for name, device in left_out.items()
    ]
    assert notes == [*lacking, f"attached to {attached}"]


VF = "openshift.io/vf"
VFS = [network("vf-0", VF), network("vf-1", VF), network("other", "openshift.io/other"), network("plain")]


@pytest.mark.parametrize(
    ("existing", "networks", "limits", "expected"),
    [
        (None, ["fabric/vf-0"], {}, {VF: "1"}),
        (None, ["fabric/vf-0@a", "fabric/vf-0@b", "fabric/vf-1", "fabric/plain"], {}, {VF: "3"}),
        (None, ["fabric/vf-0", "fabric/other"], {"cpu": 1}, {VF: "1", "openshift.io/other": "1"}),
        # The user's networks are counted if an injected network uses the same device.
        ("fabric/vf-0, fabric/other", ["fabric/vf-1"], {}, {VF: "2"}),
        ("fabric/vf-0", ["fabric/plain"], {}, {}),
        # The device of the user's network is unknown.
        ("nowhere/to-be-seen", ["fabric/vf-1"], {}, {}),
        (None, ["fabric/vf-0", "fabric/vf-1"], {VF: 1}, {}),
    ],
)
def test_devices_of_the_networks_are_requested(
    existing: str | None, networks: list[str], limits: dict[str, Any], expected: dict[str, str]
) -> None:
    submitted = job(existing)
    container = submitted["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": limits}
    _, resources, _ = injected(submitted, Snapshot(VFS), networks)
    assert resources == {"limits": {**limits, **expected}, **({"requests": expected} if expected else {})}


def test_network_with_a_device_above_the_resource_quota_is_left_out() -> None:
    view = Snapshot([*VFS, namespace("team"), quota({f"requests.{VF}": 3}, namespace="team")])
    networks = ["fabric/vf-0", "fabric/vf-1", "fabric/plain"]
    added, notes = inject(ID, mpijob(), view=view, networks=networks)
    assert added == {OF_WORKER: {"annotations": {NETWORKS: "fabric/plain"}}}
    reason = f"ResourceQuota q has 3 {VF}, and the job would need 4"
    assert notes == [f"no fabric/vf-0 and 1 more: {reason}", "attached to fabric/plain"]


def test_devices_of_networks_that_the_injection_rdma_attaches_are_requested_too() -> None:
    policy = policy_of({ID: {"networks": ["fabric/vf-0"]}, "rdma": {"always": True, "networks": ["fabric/vf-1"]}})
    submitted = mpijob(metadata={"annotations": {"training.openshift.io/rdma": "true"}})
    decision = hold(submitted, policy, view=Snapshot(VFS))
    assert decision.document is not None
    worker = decision.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert worker["metadata"]["annotations"][NETWORKS] == "fabric/vf-0, fabric/vf-1"
    assert worker["spec"]["containers"][0]["resources"] == {"limits": {VF: "2"}, "requests": {VF: "2"}}


def test_network_with_a_device_is_left_out_if_the_queue_is_unknown() -> None:
    assert inject(ID, mpijob(), view=Snapshot(SRIOV), networks=RAILS)[1] == [f"attached to {', '.join(RAILS)}"]
    _, notes = inject(ID, mpijob(metadata=QUEUED), view=Snapshot(SRIOV), networks=["fabric/rail-0", "fabric/rail-2"])
    assert notes == [
        'no fabric/rail-0: the resources of the ClusterQueue of "training" are unknown',
        "attached to fabric/rail-2",
    ]


TEXTS = st.text(st.sampled_from('ab/@, \x00\x1b\u202e\ud83d\ude00\n"[{'), max_size=40) | st.text(max_size=40)


@given(existing=TEXTS, interface=TEXTS, requested=TEXTS, in_json=st.booleans())
@example(existing="s\x1b[31m\u202e", interface="rail0", requested="fabric/rail-0@rail0", in_json=True)
def test_warnings_are_printable_for_any_input(existing: str, interface: str, requested: str, in_json: bool) -> None:
    written = json.dumps([{"name": existing, "interface": interface}]) if in_json else existing
    for policy in (only(ID), only("rdma", always=True, resource="rdma/ib", perPod=1, networks=RAILS)):
        decision = mutate(job(written, requested=requested), policy, view=KNOWN)
        assert all(note.isprintable() for note in (*decision.notes, *decision.warnings))


def test_long_names_and_lists_are_shortened_in_notes() -> None:
    long = f"{'n' * 63}/{'x' * 63}"
    _, (note,) = inject(ID, job(requested=long), view=KNOWN)
    assert note.endswith(" does not exist")
    assert len(f"{ID}: {note}") <= 120
    many = [f"fabric/rail-{index}" for index in range(64)]
    view = Snapshot([network(f"rail-{index}") for index in range(64)])
    _, (note,) = inject(ID, job(), view=view, networks=many)
    assert note == "attached to fabric/rail-0, fabric/rail-1, fabric/rail-2, fabric/rail-3, fabric/rail-4 and 59 more"


@pytest.mark.parametrize(
    ("created", "updated", "after"),
    [
        ("own", "own", "own, fabric/rail-1"),
        ("own", None, "fabric/rail-1"),
        ("own", "", "fabric/rail-1"),
        ("own", "other", "other, fabric/rail-1"),
        ("own", "fabric/rail-1", "fabric/rail-1"),
        ("own", "[", "["),
        ('[{"name":"own"}]', '[{"name":"own"}]', '[{"name":"own"}, {"namespace":"fabric","name":"rail-1"}]'),
        ('[{"name":"own"}]', '[{"name":"ow"}]', '[{"name":"ow"}, {"namespace":"fabric","name":"rail-1"}]'),
    ],
)
def test_update_restores_the_network_next_to_the_users_current_networks(
    created: str, updated: str | None, after: str
) -> None:
    policy = only(ID, networks=["fabric/rail-1"])
    stored = mutate(job(created), policy, view=KNOWN).document
    applied = mutate(job(updated), policy, "UPDATE", view=KNOWN, stored=stored).document
    assert applied is not None
    assert applied["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"][NETWORKS] == after


def test_nothing_is_injected_without_the_setting_networks() -> None:
    assert inject(ID, job(), view=KNOWN) == ({}, [])
    assert inject(ID, job("a/b/c"), view=KNOWN) == ({}, [])
