from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.rule_checks import fits_a_warning, violations
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation
from webhook.rules.images import Settings

IMAGE = "Worker.template.spec.containers.0.image"
PATH = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].image"
SECRETS = "spec.mpiReplicaSpecs[Worker].template.spec.imagePullSecrets"
DIGEST = "sha256:" + "0123456789abcdef" * 4
OURS = {"allowedRegistries": ["registry.example.com/ml"]}


@pytest.mark.parametrize(
    ("image", "settings"),
    [
        ("ubuntu", {"refuseLatest": False}),
        ("mpioperator/mpi-pi:openmpi", {}),
        ("docker.io/kubeflow/mpi-horovod-mnist:1", {}),
        ("localhost:5000/app:latest", {"refuseLatest": False}),
        (f"quay.io/team/app@{DIGEST}", {}),
        ("registry.example.com/ml/app:1", OURS),
        ("docker.io/library/ubuntu:24.04", {"allowedRegistries": ["registry.example.com/ml", "docker.io"]}),
        (f"registry.example.com/ml/app:1@{DIGEST}", {"requireDigest": True}),
        (f"registry.example.com/ml/app:latest@{DIGEST}", {"refuseLatest": True}),
        ("registry.example.com/ml/app:1", {"refuseLatest": True}),
    ],
)
def test_valid_image_is_accepted(image: str, settings: Json) -> None:
    assert violations("images", {IMAGE: image, "Launcher.template.spec.containers": []}, settings=settings) == []


@pytest.mark.parametrize(
    ("image", "fault"),
    [
        ("registry.example.com/ml/app", "has no tag, so it may change"),
        ("registry.example.com/ml/app:latest", "has the tag latest, so it may change"),
        ("localhost:5000/app", "has no tag, so it may change"),
    ],
)
def test_image_that_may_change_is_a_warning(image: str, fault: str) -> None:
    [violation] = violations("images", {IMAGE: image})
    assert violation == Violation(PATH, fault, fix="Name a version.", advisory=True)
    assert has_fix_in_the_warning(violation)


def has_fix_in_the_warning(violation: Violation) -> bool:
    return violation.fix in Finding("images", violation).warning


def test_the_same_image_in_several_containers_is_one_warning() -> None:
    both = {IMAGE: "app", "Launcher.template.spec.containers.0.image": "app"}
    [violation] = violations("images", both)
    assert violation.path == "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].image"
    assert violation.message == "has no tag, so it may change (in 2 places)"
    assert has_fix_in_the_warning(violation)
    assert len(violations("images", {**both, IMAGE: "other"})) == 2


@pytest.mark.parametrize(
    ("settings", "ceilings"),
    [({"refuseLatest": True}, ["deny"]), ({"requireDigest": True}, ["deny"]), ({"refuseLatest": False}, [])],
)
def test_policy_setting_replaces_the_warning_about_an_image_that_may_change(
    settings: Json, ceilings: list[str]
) -> None:
    good = f"registry.example.com/ml/app:1@{DIGEST}"
    changes = {IMAGE: "app", "Launcher.template.spec.containers.0.image": good}
    assert [each.ceiling for each in violations("images", changes, settings=settings)] == ceilings


@pytest.mark.parametrize(
    ("image", "settings", "message"),
    [
        ("registry.example.com/ml/data:1", OURS, None),
        ("elsewhere.example.com/data:1", OURS, '"elsewhere.example.com/data" is not from an allowed registry'),
        ("registry.example.com/ml/data:1", {"requireDigest": True}, "has no digest"),
        ("registry.example.com/ml/data", {"refuseLatest": True}, "has no tag, which means latest"),
        ("UPPER", {}, "upper case"),
    ],
)
def test_image_volume_is_checked(image: str, settings: Json, message: str | None) -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "data", "image": {"reference": image}}]
    good = f"registry.example.com/ml/app:1@{DIGEST}"
    changes = {
        "Worker.template.spec.volumes": volumes,
        IMAGE: good,
        "Launcher.template.spec.containers.0.image": good,
    }
    result = violations("images", changes, settings=settings)
    assert [violation.path for violation in result] == (
        ["spec.mpiReplicaSpecs[Worker].template.spec.volumes[1].image.reference"] if message else []
    )
    assert all(message in violation.message for violation in result if message)


@pytest.mark.parametrize("image", [REMOVE, None, ""])
def test_missing_image_is_rejected(image: object) -> None:
    fix = "Write its name, as <registry>/<name>:<tag>."
    assert violations("images", {IMAGE: image}) == [Violation(PATH, "is missing", fix=fix, reason=CauseReason.REQUIRED)]


BLANK = "contains a blank or a character outside ASCII"


@pytest.mark.parametrize(
    ("image", "message", "fix"),
    [
        (" ubuntu", f'" ubuntu" {BLANK}', 'Write "ubuntu".'),
        ("quay.io/app: 2.1", f'"quay.io/app: 2.1" {BLANK}', 'Write "quay.io/app:2.1".'),
        ("docker pull quay.io/app:1", f'"docker pull quay.io/app:1" {BLANK}', 'Write "quay.io/app:1".'),
        ("quay.io/app:<tag>", '"<tag>" is not a tag', 'Write "quay.io/app:1.0", with your tag.'),
        ("quay.io/app:${TAG}", '"${TAG}" is not a tag', 'Write "quay.io/app:1.0", with your tag.'),
        (
            "https://quay.io/Team/app:V1",
            '"https://quay.io/Team/app:V1" starts with a scheme',
            'Write "quay.io/team/app:V1".',
        ),
        (
            "quay.io/team/App:V1",
            '"team/App" has upper case letters, an image name is lower case',
            'Write "quay.io/team/app:V1".',
        ),
        (
            "docker://",
            '"docker://" starts with a scheme',
            "Remove everything up to and including ://.",
        ),
        (
            "quay.io/team/app:-1",
            '"-1" is not a tag',
            'Allowed are letters, digits, "_", "." and "-", the last two not at the start.',
        ),
        (
            "a" * 2000,
            "an image reference has at most 1024 characters, this one has 2000",
            "Write it as <registry>/<name>:<tag>.",
        ),
    ],
)
def test_invalid_image_is_rejected(image: str, message: str, fix: str) -> None:
    assert violations("images", {IMAGE: image}) == [Violation(PATH, message, fix=fix)]


MANY = ["quay.io", "a.io", "b.io", "c.io", "d.io", "e.io"]


@pytest.mark.parametrize(
    ("image", "settings", "name", "registries"),
    [
        ("ubuntu", OURS, "docker.io/library/ubuntu", "registry.example.com/ml"),
        ("registry.example.com/mlx/app:1", OURS, "registry.example.com/mlx/app", "registry.example.com/ml"),
    ],
)
def test_image_from_another_registry_is_rejected(image: str, settings: Json, name: str, registries: str) -> None:
    result = violations("images", {IMAGE: image, "Launcher.template.spec.containers": []}, settings=settings)
    message, fix = f'"{name}" is not from an allowed registry', f"Use an image from {registries}."
    assert result == [Violation(PATH, message, fix=fix, reason=CauseReason.FORBIDDEN)]


ADD_DIGEST = "Add the digest: name@sha256:... (skopeo inspect and crane digest print it)."
NAME_TAG = "Name the tag of a version, or a digest."


@pytest.mark.parametrize(
    ("image", "settings", "message", "fix"),
    [
        ("quay.io/a/b:1", {"requireDigest": True}, '"quay.io/a/b:1" has no digest, so it may change', ADD_DIGEST),
        (
            "quay.io/a/b:latest",
            {"requireDigest": True, "refuseLatest": True},
            '"quay.io/a/b:latest" has no digest, so it may change',
            ADD_DIGEST,
        ),
        (
            "quay.io/a/b:latest",
            {"refuseLatest": True},
            '"quay.io/a/b:latest" has the tag latest, which changes over time',
            NAME_TAG,
        ),
        (
            "quay.io/a/b",
            {"refuseLatest": True},
            '"quay.io/a/b" has no tag, which means latest, which changes over time',
            NAME_TAG,
        ),
    ],
)
def test_policy_can_reject_an_image_that_may_change(image: str, settings: Json, message: str, fix: str) -> None:
    result = violations("images", {IMAGE: image, "Launcher.template.spec.containers": []}, settings=settings)
    assert result == [Violation(PATH, message, fix=fix, reason=CauseReason.FORBIDDEN)]


def test_long_image_name_in_a_message_is_shortened() -> None:
    result = violations("images", {IMAGE: "quay.io/" + "a" * 200}, settings={"requireDigest": True})
    assert result[-1].message == f'"quay.io/{"a" * 89}..." has no digest, so it may change'


def test_every_container_is_checked_at_its_own_path() -> None:
    pod = {"containers": [{"image": "ok:1"}, {"image": "A B"}], "initContainers": [{}]}
    result = violations("images", {"Worker.template.spec": pod, "Launcher.template.spec": pod})
    assert [violation.path for violation in result] == [
        f"spec.mpiReplicaSpecs[{role}].template.spec.{container}.image"
        for role in ("Launcher", "Worker")
        for container in ("containers[1]", "initContainers[0]")
    ]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, False),
        ({IMAGE: "private.example.com/team/app:1"}, True),
        ({IMAGE: "private.example.com/other/app:1"}, False),
        ({IMAGE: "broken image"}, False),
        ({IMAGE: "private.example.com/team/app:1", "Worker.template.spec.imagePullSecrets": [{"name": "a"}]}, False),
    ],
)
def test_missing_pull_secret_is_a_warning(changes: Json, warned: bool) -> None:
    settings = {"pullSecretsFor": ["private.example.com/team"]}
    expected = Violation(
        SECRETS, "none for private.example.com/team", fix="Add one.", reason=CauseReason.REQUIRED, advisory=True
    )
    assert [v for v in violations("images", changes, settings=settings) if v.advisory] == [expected] * warned
    assert fits_a_warning("images", expected)


@pytest.mark.parametrize("setting", ["allowedRegistries", "pullSecretsFor"])
def test_registry_setting_without_a_host_is_rejected(setting: str) -> None:
    with pytest.raises(ValidationError, match='"team" does not start with a registry'):
        Settings.model_validate({setting: ["team"]})


Sources = Sequence[tuple[str, str]]
"""Each item is (source, mirrorSourcePolicy)."""


def mirrors(kind: str, *sources: tuple[str, str]) -> Json:
    field = "imageDigestMirrors" if kind == "ImageDigestMirrorSet" else "imageTagMirrors"
    listed = [{"source": source, "mirrors": ["mirror.example.com/x"], "mirrorSourcePolicy": p} for source, p in sources]
    metadata = {"name": f"m-{kind.lower()}"}
    return {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": metadata, "spec": {field: listed}}


def test_image_that_lost_its_digest_has_the_higher_degree() -> None:
    """The degree says how bad a violation is. An update must not increase the degree."""
    image = "registry.example.com/a:1"
    launcher, worker = (f"{role}.template.spec.containers.0.image" for role in ("Launcher", "Worker"))
    stored = {worker: image, launcher: f"registry.example.com/a@sha256:{'0' * 64}"}
    settings = {"requireDigest": True}
    result = violations("images", {worker: image, launcher: image}, settings=settings, old=stored)
    assert {each.path.split(".")[1]: each.degree and each.degree.amount for each in result} == {
        "mpiReplicaSpecs[Launcher]": 2,
        "mpiReplicaSpecs[Worker]": 1,
    }


def mirrored(image: str, digests: Sources, tags: Sources) -> list[Violation]:
    sets = [mirrors("ImageDigestMirrorSet", *digests), mirrors("ImageTagMirrorSet", *tags)]
    changes = {IMAGE: image, "Launcher.template.spec.containers.0.image": f"quay.io/team/app@{DIGEST}"}
    return violations("images", changes, settings={"refuseLatest": False}, view=Snapshot(sets))


ALLOWED, NEVER = "AllowContactingSource", "NeverContactSource"


@pytest.mark.parametrize(
    ("image", "digests", "tags", "message"),
    [
        ("quay.io/team/app:1", [("quay.io", "")], [], "is mirrored by digest only"),
        ("quay.io/team/app", [("quay.io/team", ALLOWED)], [], "is mirrored by digest only"),
        ("quay.io/team/app:1", [("quay.io/team/app", NEVER)], [], "no node can pull this tag"),
        ("app:1", [("docker.io/library", NEVER)], [], "no node can pull this tag"),
        ("a.b.example.com/app:1", [("*.example.com", "")], [], "is mirrored by digest only"),
        ("example.com/app:1", [("*.example.com", "")], [], None),
        ("quay.io/team/app:1", [("quay.io", "")], [("quay.io", "")], None),
        ("quay.io/team/app:1", [("quay.io/team", "")], [("quay.io", "")], "is mirrored by digest only"),
        ("quay.io/teams/app:1", [("quay.io/team", "")], [], None),
        (f"quay.io/team/app@{DIGEST}", [("quay.io", NEVER)], [], None),
        (f"quay.io/team/app:1@{DIGEST}", [("quay.io", NEVER)], [], None),
        ("quay.io/team/app:1", [], [("quay.io", "")], None),
    ],
)
def test_tag_of_an_image_that_is_mirrored_by_digest_is_a_warning(
    image: str, digests: Sources, tags: Sources, message: str | None
) -> None:
    result = mirrored(image, digests, tags)
    assert [violation.path for violation in result] == ([PATH] if message else [])
    for violation in result:
        assert violation.message == message
        assert violation.advisory
        assert has_fix_in_the_warning(violation)


def test_source_without_mirrors_causes_no_warning() -> None:
    digests = mirrors("ImageDigestMirrorSet", ("quay.io", ""))
    del digests["spec"]["imageDigestMirrors"][0]["mirrors"]
    view = Snapshot([digests, mirrors("ImageTagMirrorSet")])
    assert violations("images", {IMAGE: "quay.io/team/app:1"}, view=view) == []


def test_unknown_mirrors_cause_no_warning() -> None:
    for sets in ([], [mirrors("ImageTagMirrorSet")], [mirrors("ImageDigestMirrorSet", ("quay.io", NEVER))]):
        assert violations("images", {IMAGE: "quay.io/team/app:1"}, view=Snapshot(sets)) == []


def test_image_of_the_wait_container_is_reported_once() -> None:
    """The injected init container `wait-for-workers` has the same image as the launcher."""
    image, copies = "registry.example.com/ml/app", "Launcher.template.spec.initContainers"
    once = {"Launcher.template.spec.containers.0.image": image}
    wait = {"name": "wait-for-workers", "image": image}
    assert violations("images", once | {copies: [wait]}) == violations("images", once)
    assert violations("images", once | {copies: [wait | {"image": "other"}]}) != violations("images", once)
