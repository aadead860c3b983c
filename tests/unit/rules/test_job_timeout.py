"""job-timeout: a time limit must be valid and must not exceed the maximum. Annotation and field must agree."""

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.jobs import REMOVE, changed, request
from tests.support.policies import HEADER
from tests.support.rule_checks import as_texts, decide, fits_a_warning, violations
from webhook.admission import pipelines
from webhook.admission.pipelines import load_policy
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.rules import CauseReason
from webhook.rules.job_timeout import Settings

FIELD = "spec.runPolicy.activeDeadlineSeconds"
TIMEOUT = "training.openshift.io/timeout"
ACTION = "training.openshift.io/timeout-action"
DAY = 24 * 60 * 60


def job(seconds: int | None = None, **annotations: str) -> Json:
    names = {"timeout": TIMEOUT, "action": ACTION}
    metadata = {"metadata.annotations": {names[key]: value for key, value in annotations.items()}}
    return metadata | ({FIELD: seconds} if seconds is not None else {})


@pytest.mark.parametrize(
    "changes",
    [
        job(),
        job(DAY),
        job(timeout="7d"),
        job(3 * DAY, timeout="72h"),
    ],
)
def test_valid_limit_is_accepted(changes: Json) -> None:
    assert violations("job-timeout", changes) == []


AT_TIMEOUT, AT_ACTION = (f"metadata.annotations[{name}]" for name in (TIMEOUT, ACTION))
TOO_LONG = "longer than 7d (604800 s)"
OR_EXEMPT = "or ask for an exemption."


@pytest.mark.parametrize(
    ("changes", "path", "message", "fix"),
    [
        (job(7 * DAY + 1), FIELD, f"604801 s are {TOO_LONG}", f"Set it to 604800 or less, {OR_EXEMPT}"),
        (job(timeout="8d"), AT_TIMEOUT, f"691200 s are {TOO_LONG}", f"Set it to 7d or less, {OR_EXEMPT}"),
        (  # either the injection or the user wrote the field
            job(8 * DAY, timeout="8d"),
            AT_TIMEOUT,
            f"691200 s are {TOO_LONG}",
            f"Set it to 7d or less and remove spec.runPolicy.activeDeadlineSeconds if you wrote it, {OR_EXEMPT}",
        ),
        (
            job(timeout="soon"),
            AT_TIMEOUT,
            f'{TIMEOUT} "soon" is not a duration like 72h or 7d',
            "Write it as 90m, 72h or 7d.",
        ),
        (
            job(DAY, timeout="72h"),
            FIELD,
            f'is 86400, and {TIMEOUT} "72h" is 259200 s',
            "Remove one of the two.",
        ),
        (
            job(action="explode\n"),
            AT_ACTION,
            f'{ACTION} "explode?" is not known',
            "Use terminate or notify-only, or remove it.",
        ),
    ],
)
def test_invalid_or_too_long_limit_is_rejected(changes: Json, path: str, message: str, fix: str) -> None:
    [violation] = violations("job-timeout", changes)
    assert (violation.path, violation.message, violation.fix) == (path, message, fix)
    assert not violation.advisory


def test_limit_that_is_too_long_and_differs_from_the_annotation_is_two_violations() -> None:
    annotation, field = violations("job-timeout", job(30 * DAY, timeout="9d"))
    assert (annotation.path, annotation.fix) == (AT_TIMEOUT, "Remove it.")
    assert annotation.message == f'{TIMEOUT} "9d" is 777600 s, and activeDeadlineSeconds is 2592000'
    assert (field.path, field.fix.partition(",")[0]) == (FIELD, "Set it to 604800 or less")
    assert [each.fix for each in violations("job-timeout", job(DAY, timeout="9d"))] == ["Remove it."]


def test_changed_annotation_of_an_existing_job_is_a_warning() -> None:
    [violation] = violations("job-timeout", job(DAY, timeout="72h"), old=job(DAY, timeout="24h"))
    assert violation.advisory
    assert violation.message == f'{TIMEOUT} "72h" has no effect on an existing job, which has 86400 s'
    assert violation.fix == f"Set {FIELD} to 259200."
    assert as_texts(violations("job-timeout", job(3 * DAY, timeout="72h"), old=job(DAY, timeout="72h"))) == []
    assert fits_a_warning("job-timeout", violation) or len(violation.message) < 120


@pytest.mark.parametrize("stored", [DAY, 7 * DAY])
def test_too_long_annotation_of_an_existing_job_is_a_warning(stored: int) -> None:
    [violation] = violations("job-timeout", job(stored, timeout="9d"), old=job(stored))
    assert violation.fix == f"Set {FIELD} to 604800 or less, or ask for an exemption."
    assert violation.advisory


NONE = "is missing; every job needs a time limit"


@pytest.mark.parametrize("without", [job(action="notify-only"), job(action="notify-only", timeout="72h")])
def test_action_notify_only_without_a_limit_is_rejected(without: Json) -> None:
    [violation] = violations("job-timeout", without)
    assert (violation.path, violation.message) == (FIELD, NONE)
    assert violation.fix == "Set it to 604800 or less, or ask for an exemption."
    assert violation.reason is CauseReason.REQUIRED
    assert violations("job-timeout", without, settings={"max": None}) == []


@pytest.mark.parametrize(
    ("without", "fix"),
    [
        (job(), "Set it to 604800 or less, or ask for an exemption."),
        (job(timeout="72h"), "Set it to 259200, as annotated."),
        (job(timeout="9d"), "Annotate a shorter time and write its seconds here."),
    ],
)
def test_update_that_removes_the_limit_is_rejected(without: Json, fix: str) -> None:
    violation, *_ = violations("job-timeout", without, old=job(DAY))
    assert (violation.path, violation.message, violation.fix) == (FIELD, NONE, fix)
    assert as_texts(violations("job-timeout", job(), old=job(DAY), settings={"max": None})) == []
    assert as_texts(violations("job-timeout", without, old=job())) == as_texts(violations("job-timeout", without))


def test_limit_of_zero_is_rejected() -> None:
    """The Job controller ends a Job whose deadline is 0 as soon as it starts."""
    for without, fix in (
        (job(0), "Remove it, or set it to the seconds it may take."),
        (job(0, timeout="72h"), "Set it to 259200, as annotated."),
    ):
        [violation] = violations("job-timeout", without)
        assert (violation.path, violation.message) == (FIELD, "is 0 s, so the job fails as soon as it starts")
        assert violation.fix == fix
        assert not violation.advisory


@pytest.mark.parametrize(("seconds", "accepted"), [(DAY, False), (3 * DAY, True), (7 * DAY, True)])
def test_limit_below_the_annotated_time_is_rejected_with_action_notify_only(seconds: int, accepted: bool) -> None:
    assert (violations("job-timeout", job(seconds, timeout="72h", action="notify-only")) == []) is accepted


def outcome(submitted: Json, stored: Json | None = None, policy: str = "") -> tuple[int | None, list[str]]:
    """The limit of the submitted job after the injection, and the rules that reject the job."""
    document = load_policy(HEADER + policy)
    mutated = pipelines.mutate(request(submitted, old=stored), policy=document, view=NothingKnown())
    sent = mutated.document if mutated.patch else submitted
    decision = decide(sent, policy, old=stored)
    return sent["spec"]["runPolicy"].get("activeDeadlineSeconds"), [finding.rule for finding in decision.denied]


WEEK = 7 * DAY
OWNED = {"apiVersion": "a/v1", "kind": "B", "name": "c", "uid": "d", "controller": True}


@pytest.mark.parametrize(
    ("submitted", "seconds", "rejected"),
    [
        (job(), DAY, False),
        (job(timeout="72h"), 3 * DAY, False),
        (job(timeout="8d"), 8 * DAY, True),
        (job(timeout="soon"), DAY, True),
        (job(8 * DAY), 8 * DAY, True),
        (job(0), 0, True),
        (job(action="notify-only", timeout="8d"), 8 * DAY, True),
        (job(DAY, action="notify-only"), DAY, False),
        ({"metadata.annotations": {"training.openshift.io/skip": "job-timeout"}}, DAY, False),
        ({"metadata.ownerReferences": [OWNED]}, DAY, False),
        ({"metadata.labels": {"kueue.x-k8s.io/prebuilt-workload-name": "x"}}, DAY, False),
        ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, DAY, False),
        ({"spec.runPolicy.suspend": True}, DAY, False),
    ],
)
def test_new_job_cannot_exceed_the_maximum(submitted: Json, seconds: int, rejected: bool) -> None:
    """By default, a job runs for at most seven days. RBAC can grant a user an exemption."""
    assert outcome(changed(submitted)) == (seconds, ["job-timeout"] * rejected)


def test_update_cannot_exceed_the_maximum() -> None:
    stored = changed(job(DAY) | {"spec.runPolicy.suspend": True})
    assert outcome(changed(job()), stored) == (DAY, []), "the injection restores the limit"
    assert outcome(changed(job(8 * DAY)), stored) == (8 * DAY, ["job-timeout"])
    assert outcome(changed(job(DAY)), stored) == (DAY, []), "the job resumes with its limit"
    never = changed({"metadata.annotations": {ACTION: "notify-only"}})
    assert outcome(changed({"metadata.annotations": {ACTION: "notify-only", "a": "b"}}), never) == (None, [])


def test_job_may_have_no_limit_if_the_policy_lacks_a_maximum_or_the_injection() -> None:
    unbounded = "rules: {job-timeout: {max: null}}\n"
    assert outcome(changed(job(action="notify-only")), policy=unbounded) == (None, [])
    skipping = changed({"metadata.annotations": {"training.openshift.io/skip": "job-timeout"}})
    assert outcome(skipping) == (DAY, [])
    assert outcome(changed(job()), policy="injectOnly: []\n") == (None, [])


def test_policy_can_change_or_remove_the_maximum() -> None:
    assert violations("job-timeout", job(30 * DAY), settings={"max": None}) == []
    assert violations("job-timeout", job(DAY), settings={"max": "12h"})
    with pytest.raises(ValidationError):
        Settings(max="tomorrow")


def test_exempted_user_may_exceed_the_maximum() -> None:
    exempt = {"training.openshift.io/exempt": "job-timeout", "training.openshift.io/exempt-reason": "OPS-1"}

    def denied(submitted: Json, granted: dict[str, bool]) -> list[str]:
        return [finding.rule for finding in decide(submitted, granted=granted).denied]

    for changes in (job(8 * DAY), job(timeout="8d"), job(action="notify-only")):
        submitted = changed(changes)
        submitted["metadata"]["annotations"] = submitted["metadata"].get("annotations", {}) | exempt
        assert denied(submitted, {"job-timeout": False}) == ["job-timeout"]
        assert denied(submitted, {"job-timeout": True}) == []


POD = "Worker.template.spec"
GRACE = "terminationGracePeriodSeconds"
YEAR = 365 * DAY


class TestGracePeriods:
    """After the time limit, a suspension or a deletion, pods keep running for their grace period."""

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({f"{POD}.{GRACE}": YEAR}, ""),
            ({f"{POD}.containers.0.livenessProbe": {GRACE: YEAR}}, ".containers[0].livenessProbe"),
            ({f"{POD}.containers.0.startupProbe": {GRACE: YEAR}}, ".containers[0].startupProbe"),
            (
                {f"{POD}.initContainers": [{"restartPolicy": "Always", "livenessProbe": {GRACE: YEAR}}]},
                ".initContainers[0].livenessProbe",
            ),
        ],
    )
    def test_grace_period_above_the_maximum_is_rejected(self, changes: Json, path: str) -> None:
        for role in ("Worker", "Launcher"):
            submitted = {key.replace("Worker", role): value for key, value in changes.items()}
            (violation,) = violations("job-timeout", submitted)
            assert violation.path == f"spec.mpiReplicaSpecs[{role}].template.spec{path}.{GRACE}"
            assert violation.message.endswith(" s are longer than 1h (3600 s)")
            assert violation.fix == "Set it to 3600 or less, or ask for an exemption."
            assert not violation.advisory
            assert violations("job-timeout", submitted, settings={"maxGracePeriod": None}) == []
            assert violations("job-timeout", submitted, settings={"max": None}), "maxGracePeriod does not depend on max"

    @pytest.mark.parametrize(
        "changes",
        [
            {f"{POD}.{GRACE}": 3600},  # time to write a checkpoint
            {f"{POD}.{GRACE}": None, f"{POD}.containers.0.livenessProbe": {GRACE: 600}},
            {f"{POD}.containers.0.startupProbe": {"periodSeconds": YEAR}},
        ],
    )
    def test_grace_period_up_to_the_maximum_is_accepted(self, changes: Json) -> None:
        assert violations("job-timeout", changes) == []

    def test_update_may_shorten_a_grace_period_that_is_too_long(self) -> None:
        assert outcome(changed({f"{POD}.{GRACE}": 2 * DAY}), changed({f"{POD}.{GRACE}": YEAR})) == (None, [])
        assert outcome(changed({f"{POD}.{GRACE}": YEAR}), changed({f"{POD}.{GRACE}": DAY})) == (None, ["job-timeout"])


OWN = f"{POD}.activeDeadlineSeconds"
OWN_PATH = "spec.mpiReplicaSpecs[Worker].template.spec.activeDeadlineSeconds"
LIMITED: Json = {FIELD: DAY}


class TestLimitOfWorkers:
    """The time limit of the MPIJob ends only the launcher's Job. Workers have a separate time limit."""

    def test_worker_limit_above_the_maximum_is_rejected(self) -> None:
        (violation,) = violations("job-timeout", {**LIMITED, OWN: WEEK + 1})
        assert (violation.path, violation.message) == (OWN_PATH, "604801 s are longer than 7d (604800 s)")
        assert violation.fix == "Set it to 604800 or less, or ask for an exemption."

    @pytest.mark.parametrize(
        ("changes", "settings"),
        [
            ({**LIMITED, OWN: WEEK + 1}, {"max": None}),
            ({**LIMITED, OWN: WEEK + 1}, {"max": "8d"}),
            ({**LIMITED, OWN: WEEK}, {}),
            (LIMITED, {}),  # the workers have no limit
            ({OWN: YEAR}, {}),  # the job itself has no limit
        ],
    )
    def test_worker_limit_up_to_the_maximum_is_accepted(self, changes: Json, settings: Json) -> None:
        assert violations("job-timeout", changes, settings=settings) == []

    @pytest.mark.parametrize("clean", ["None", "Running"])
    def test_update_cannot_raise_or_remove_the_worker_limit(self, clean: str) -> None:
        stored = {**LIMITED, OWN: 60, "spec.runPolicy.cleanPodPolicy": clean}
        assert outcome(changed({**stored, OWN: YEAR}), changed(stored))[1] == ["job-timeout"]
        (violation,) = violations("job-timeout", {**stored, OWN: REMOVE}, old=stored)
        assert (violation.path, violation.fix) == (OWN_PATH, "Set it to 60, as it was.")
        assert violations("job-timeout", {**stored, OWN: REMOVE}, old=stored, settings={"max": None}) == []
        assert violations("job-timeout", {**stored, OWN: 50}, old=stored) == []
        assert outcome(changed({**stored, OWN: REMOVE}), changed(stored))[1] == [], "the injection restores the limit"

    @pytest.mark.parametrize(
        ("submitted", "limit"),
        [
            ({}, WEEK),
            ({"metadata.annotations": {"training.openshift.io/debug-mode": "true"}}, WEEK),
            ({"metadata.annotations": {"training.openshift.io/skip": "job-timeout"}}, WEEK),
            ({"spec.launcherCreationPolicy": "WaitForWorkersReady"}, WEEK),
            ({**LIMITED, OWN: 60}, 60),
            ({"Worker.replicas": 0}, WEEK),  # an update may add workers
            ({"Worker.template.spec.containers": []}, None),
        ],
    )
    def test_new_job_with_a_limit_gets_a_worker_limit(self, submitted: Json, limit: int | None) -> None:
        mutated = pipelines.mutate(request(changed(submitted)), policy=load_policy(None), view=Snapshot([]))
        worker = mutated.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        assert worker.get("activeDeadlineSeconds") == limit

    @pytest.mark.parametrize(
        "policy", ["injections: {job-timeout: {default: null}}", "rules: {job-timeout: {max: null}}"]
    )
    def test_workers_get_no_limit_if_the_policy_lacks_a_default_or_a_maximum(self, policy: str) -> None:
        mutated = pipelines.mutate(request(changed()), policy=load_policy(f"{HEADER}{policy}\n"), view=NothingKnown())
        assert "activeDeadlineSeconds" not in mutated.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
