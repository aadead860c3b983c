"""`mpijob-webhook check`: the verdict on jobs in files."""

import json

import pytest
from msgspec import Raw

from tests.support.checking import NAMESPACE, POLICY, Check, as_json
from tests.support.jobs import GOOD, REMOVE, changed
from webhook.admission.pipelines import load_policy, mutate
from webhook.api.mpijob import OLDER_VERSIONS
from webhook.api.review import AdmissionRequest
from webhook.cluster.view import NothingKnown

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_a_good_job_is_admitted(check: Check) -> None:
    result = check("job.yaml", job_yaml=GOOD)
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "job.yaml: team-a/train: admitted\n  injected:\n    api-access: Pods get no token for the Kubernetes API unless"
    )
    assert (
        "\n    istio: MPI pods stay out of the Istio mesh.\n"
        '      added sidecar.istio.io/inject: "false" to Launcher, Worker, job: MPI does not work through a sidecar\n'
        "      + spec.mpiReplicaSpecs[Launcher].template.metadata.labels[sidecar.istio.io/inject]: 'false'\n"
    ) in result.stdout
    assert result.stdout.endswith("\n\n1 job: 1 admitted, 0 refused\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith("not judged: what depends on ")
    assert "policies, resourcequotas" in line
    assert line.endswith(" (no cluster is known: see --kubeconfig and --cluster)")


def test_a_refused_job_shows_every_violation_and_nothing_injected(check: Check) -> None:
    command = "Launcher.template.spec.containers.0.command"
    job = changed({"Worker.replicas": 1, "Launcher.replicas": 2, command: ["mpirun", "-np", "2", "train"]})
    result = check("job.yaml", job_yaml=job)
    assert result.exit_code == 1
    assert result.stdout == (
        "job.yaml: team-a/train: refused\n"
        "  1. spec.mpiReplicaSpecs[Launcher].replicas: is 2, there is always one launcher [upstream-contract]\n"
        "     Set replicas to 1.\n"
        "  2. spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required [worker-count]\n"
        "     Set replicas to 2 or more.\n"
        "\n"
        "1 job: 0 admitted, 1 refused\n"
    )


def test_warnings_are_shown(check: Check) -> None:
    result = check("job.yaml", job_yaml=changed({"spec.runPolicy.ttlSecondsAfterFinished": 1}))
    assert result.exit_code == 0
    path = "spec.runPolicy.ttlSecondsAfterFinished"
    assert f"\n  warning: {path}: after 1 s the job may run a second time. Set it to 30 or more. [retention]\n" in (
        result.stdout
    )


def test_what_could_not_be_injected_is_a_warning(check: Check) -> None:
    job = changed({"metadata.annotations": {"training.openshift.io/skip": "nothing"}})
    result = check("job.yaml", job_yaml=job)
    told = (
        '  warning: training.openshift.io/skip: no injection is called "nothing"; `mpijob-webhook rules` lists them\n'
    )
    assert told in result.stdout
    result = check("job.yaml", job_yaml=changed({"Worker.replicas": 1}, job))
    assert result.exit_code == 1
    assert told in result.stdout, "it is told with a refusal too"


def test_what_comes_back_in_an_update_is_told(check: Check) -> None:
    request = AdmissionRequest(uid="", operation="CREATE", namespace="team-a", object=Raw(json.dumps(GOOD).encode()))
    stored = mutate(request, policy=load_policy(None), view=NothingKnown()).document
    result = check("job.yaml", "--cluster", "c.yaml", job_yaml=GOOD, c_yaml=stored)
    title, heading, path, *_ = result.stdout.splitlines()[1:]
    assert title == "  put back from the stored job:"
    assert heading == "    mpi-env: Current MPI releases find their hosts, wait for them, and log in as the job says."
    assert path == "      + spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].env:"
    assert "    istio: " not in result.stdout, "kubectl apply leaves what a mapping has beside the file"


def test_json_has_exactly_the_promised_keys(check: Check) -> None:
    result = check("job.yaml", "-o", "json", job_yaml=changed({"Worker.replicas": 1}))
    assert result.exit_code == 1
    (verdict,) = as_json(result)
    assert list(verdict) == [
        "file", "document", "kind", "name", "namespace", "allowed", "message", "causes", "standing", "warnings",
        "ruleFaults", "refusedPods", "notJudged", "injected", "policies",
    ]  # fmt: skip
    assert (verdict["file"], verdict["document"], verdict["kind"]) == ("job.yaml", 1, "MPIJob")
    assert (verdict["name"], verdict["namespace"], verdict["allowed"]) == ("train", "team-a", False)
    assert verdict["message"].startswith('MPIJob "train" is refused, 1 problem to mend:\n1. spec.mpiReplicaSpecs')
    assert verdict["causes"] == [
        {
            "rule": "worker-count",
            "field": "spec.mpiReplicaSpecs[Worker].replicas",
            "message": "1 worker, at least 2 required. Set replicas to 2 or more.",
        }
    ]
    assert any(warning.startswith("injected: job-timeout 24h, ") for warning in verdict["warnings"])
    operation = {"op": "add", "path": "/metadata/annotations", "value": {"sidecar.istio.io/inject": "false"}}
    entries = {entry["id"]: entry for entry in verdict["injected"]}
    assert list(entries["istio"]) == ["id", "reason", "notes", "patch"]
    assert entries["istio"]["reason"] == "MPI pods stay out of the Istio mesh."
    assert entries["istio"]["notes"][0].startswith('added sidecar.istio.io/inject: "false" to ')
    assert operation in entries["istio"]["patch"]


def test_json_of_an_admitted_job(check: Check) -> None:
    (verdict,) = as_json(check("job.yaml", "-o", "json", job_yaml=GOOD))
    assert verdict["allowed"] is True
    assert verdict["message"] == ""
    assert verdict["causes"] == []


def test_what_is_unknown_is_told_in_words(check: Check) -> None:
    said = check("a.yaml", a_yaml=GOOD).stderr
    assert "Kueue's configuration, limitranges" in said
    assert "pods, pods of others, policies" in said


def test_generate_name(check: Check) -> None:
    job = changed({"metadata.name": REMOVE, "metadata.generateName": "train-"})
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml=job))
    assert verdict["name"] == "train-"
    assert verdict["allowed"] is True


@pytest.mark.parametrize("version", ["kubeflow.org/v2", "batch/v1", None, 3, "x" * 500])
def test_other_api_versions_are_denied(check: Check, version: object) -> None:
    result = check("a.yaml", "-o", "json", a_yaml={**GOOD, "apiVersion": version})
    assert result.exit_code == 1
    (verdict,) = as_json(result)
    (cause,) = verdict["causes"]
    assert (cause["rule"], cause["field"]) == ("schema", "apiVersion")
    assert (
        "the MPI operator knows only kubeflow.org/v2beta1. Set apiVersion to kubeflow.org/v2beta1" in cause["message"]
    )
    assert len(verdict["message"]) < 700


@pytest.mark.parametrize(
    ("version", "said"),
    [
        *(
            (version, "Run `mpijob-webhook convert FILE`: it writes the job anew, and says what is left to do.")
            for version in OLDER_VERSIONS
        ),
        (
            "kubeflow.org/v2",
            "Set apiVersion to kubeflow.org/v2beta1, and check the fields: other versions have others.",
        ),
    ],
)
def test_other_versions(check: Check, version: str, said: str) -> None:
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml={**GOOD, "apiVersion": version}))
    (cause,) = verdict["causes"]
    assert cause["message"].endswith(f"knows only kubeflow.org/v2beta1. {said}")


def test_nulls_are_dropped_as_in_the_api_server(check: Check) -> None:
    nulls = {"spec.slotsPerWorker": None, "metadata.labels": {"app": None}, "Worker.template.metadata.labels": None}
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml=changed(nulls)))
    assert verdict["allowed"] is True, "null is no label's value"
    operations = [operation for entry in verdict["injected"] for operation in entry["patch"]]
    assert "/metadata/labels/training.kubeflow.org~1job-type" in [operation["path"] for operation in operations]


def test_what_is_injected_is_there_when_the_rules_look(check: Check) -> None:
    job, rules = changed({"spec.runPolicy.cleanPodPolicy": REMOVE}), "rules: {clean-pod-policy: {allowed: [Running]}}\n"
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=POLICY + rules).exit_code == 0
    off = "injections: {clean-pod-policy: {enabled: false}}\n"
    assert check("a.yaml", "--policy", "p.yaml", p_yaml=POLICY + rules + off).exit_code == 1


def test_what_only_the_api_server_sets_is_cleared(check: Check) -> None:
    dumped = {"deletionTimestamp": "2026-01-31T00:00:00Z", "uid": "1", "resourceVersion": "7"}
    job = changed({"Worker.replicas": 1, **{f"metadata.{k}": v for k, v in dumped.items()}})
    assert check("a.yaml", a_yaml=job).exit_code == 1


RUNS = {"conditions": [{"type": "Running", "status": "True"}]}


def test_a_job_that_the_cluster_has_is_checked_as_a_change(check: Check) -> None:
    mine = {"metadata.uid": "1", "spec.sshAuthMountPath": "/home/mpiuser/.ssh", "status": RUNS}
    stored = changed({"spec.slotsPerWorker": 1, **mine})
    files = {
        "job_yaml": changed({"spec.sshAuthMountPath": REMOVE}),
        "c_yaml": {"kind": "List", "items": [stored, NAMESPACE]},
    }
    result = check("job.yaml", "--cluster", "c.yaml", **files)
    assert result.exit_code == 1
    assert result.stdout == (
        "job.yaml: team-a/train: refused (as a change to the job that the cluster has)\n"
        "  1. spec.slotsPerWorker: changed from 1 to 2 while the job runs, which breaks it [update-safety]\n"
        "     Suspend the job first (spec.runPolicy.suspend: true), or make a new one.\n"
        "\n"
        "1 job: 0 admitted, 1 refused\n"
    )


def test_a_change_is_made_as_kubectl_apply_makes_it(check: Check) -> None:
    applied = changed({"spec.slotsPerWorker": 4})
    annotations = {LAST_APPLIED: json.dumps(applied)}
    stored = changed({"spec.slotsPerWorker": 4, "metadata.annotations": annotations, "status": RUNS})
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=changed({"spec.slotsPerWorker": REMOVE}), c_yaml=stored)
    assert "spec.slotsPerWorker: changed from 4 to 1" in result.stdout
    stored = changed({"spec.slotsPerWorker": 4, "metadata.annotations": {LAST_APPLIED: "]"}})
    assert check("a.yaml", "--cluster", "c.yaml", c_yaml=stored).exit_code == 0


def test_the_faults_of_a_job_that_stands_unchanged_are_shown(check: Check) -> None:
    faulty = changed({"Worker.replicas": 1})
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=faulty, c_yaml=faulty)
    assert result.exit_code == 0, "the change would be admitted"
    assert "team-a/train: admitted (as a change to the job that the cluster has)\n" in result.stdout
    assert (
        "  warning: spec.mpiReplicaSpecs[Worker].replicas: as it stands it would be refused if it were new: "
        "1 worker, at least 2 required. Set replicas to 2 or more. [worker-count]\n"
    ) in result.stdout
    (verdict,) = as_json(check("a.yaml", "--cluster", "c.yaml", "-o", "json"))
    assert {cause["rule"] for cause in verdict["standing"]} == {"worker-count"}


def test_what_a_job_takes_itself_is_no_fault_of_it(check: Check) -> None:
    used = {"requests.nvidia.com/gpu": "32"}
    status = {"hard": used, "used": used}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "team-a"}}
    items = {"kind": "List", "items": [GOOD, {**quota, "status": status}]}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=items)
    assert "as it stands" not in result.stdout


def test_quiet(check: Check) -> None:
    files = {"a_yaml": GOOD, "b_yaml": NAMESPACE, "c_yaml": changed({"Worker.replicas": 1, "metadata.name": "bad"})}
    result = check("a.yaml", "b.yaml", "--quiet", **files)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = check("a.yaml", "b.yaml", "c.yaml", "-q")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("c.yaml: team-a/bad: refused\n  1. spec.mpiReplicaSpecs[Worker].replicas: 1 worker")
    assert [each["name"] for each in as_json(check("a.yaml", "c.yaml", "-q", "-o", "json"))] == ["bad"]
    assert check("b.yaml", "-q").exit_code == 2


def test_who_submits_the_job_is_unknown_where_exemptions_ask(check: Check) -> None:
    exempt = "exemptions: [{rules: [images], users: [ann], reason: x}]"
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=POLICY + exempt)
    assert ", the user's exemptions (no cluster is known" in result.stderr


def test_a_job_of_another_namespace_is_another_job(check: Check) -> None:
    stored = changed({"metadata.namespace": "team-b", "spec.slotsPerWorker": 1})
    assert check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=stored).exit_code == 0


def test_an_exemption_that_has_ended_excuses_nobody(check: Check) -> None:
    policy = POLICY + "exemptions: [{rules: [worker-count], namespaces: [team-a], reason: r, expires: %s}]"
    job = changed({"Worker.replicas": 1})
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2001-01-01").exit_code == 1
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2999-01-01").exit_code == 0
