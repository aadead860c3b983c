"""`mpijob-webhook check`: the verdict on jobs in files."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.support.jobs import GOOD, REMOVE, changed
from tests.support.object_api import fake_api, kubeconfig
from tests.support.policies import HEADER, configmap
from tests.support.strategies import PROPERTY, json_values, mangled_jobs
from webhook.admission.pipelines import load_policy, mutate
from webhook.api import yaml
from webhook.api.mpijob import OLDER_VERSIONS
from webhook.api.review import AdmissionRequest
from webhook.cli import files as manifests
from webhook.cli import published_schema
from webhook.cli.main import main
from webhook.cluster.view import NothingKnown

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs the command in an empty folder; files are given as name=content, JSON values or text."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | bytes | None = None, **files: Any) -> Result:
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return CliRunner().invoke(main, ["check", *arguments], input=stdin, catch_exceptions=False)

    return run


def as_json(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_a_good_job_is_admitted(check: Check) -> None:
    result = check("job.yaml", job_yaml=GOOD)
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "job.yaml: team-a/train: admitted\n"
        "  injected, and recorded in training.openshift.io/injected:\n"
        "    api-access: Pods get no token for the Kubernetes API unless"
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
    assert title == "  restored, as training.openshift.io/injected on the job records:"
    assert heading == "    mpi-env: Current MPI releases find their hosts, wait for them, and log in as the job says."
    assert path == "      + spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].env:"
    assert "    istio: " not in result.stdout, "kubectl apply leaves what a mapping has beside the file"


def test_json_has_exactly_the_promised_keys(check: Check) -> None:
    result = check("job.yaml", "-o", "json", job_yaml=changed({"Worker.replicas": 1}))
    assert result.exit_code == 1
    (verdict,) = as_json(result)
    assert list(verdict) == [
        "file", "document", "kind", "name", "namespace", "allowed", "message", "causes", "standing", "warnings",
        "ruleFaults", "notJudged", "injected", "policies",
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


def test_several_documents_lists_and_lists_of_lists(check: Check) -> None:
    job_list = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJobList", "items": [GOOD]}
    bare = {key: value for key, value in GOOD.items() if key not in {"apiVersion", "kind"}}
    lists = {"apiVersion": "v1", "kind": "List", "items": [GOOD, NAMESPACE, {**job_list, "items": [bare]}]}
    text = "\n---\n".join(json.dumps(document) for document in (lists, job_list, GOOD, NAMESPACE))
    result = check("jobs.yaml", "-o", "json", jobs_yaml=f"# comment\n---\n{text}\n---\n")
    assert result.exit_code == 0
    assert [verdict["document"] for verdict in as_json(result)] == [1, 1, 2, 3]
    empty = {"apiVersion": "v1", "kind": "List", "items": None}
    assert len(as_json(check("jobs.yaml", "-o", "json", jobs_yaml={**empty, "items": [GOOD, empty]}))) == 1


def test_other_kinds_are_passed_over_with_a_note(check: Check) -> None:
    result = check("a.yaml", "b.yaml", a_yaml=GOOD, b_yaml=NAMESPACE)
    assert result.exit_code == 0
    assert result.stderr.startswith("b.yaml: passed over Namespace team-a\nnot judged: ")
    assert "Namespace" not in result.stdout
    assert check("a.yaml", "b.yaml", "-o", "json").stderr == ""


def test_a_directory_stands_for_its_files(check: Check) -> None:
    files = {"jobs__a_yaml": GOOD, "jobs__b_yml": GOOD, "jobs__c_json": GOOD, "jobs__d_txt": "]"}
    result = check("jobs", "-o", "json", **files)
    assert result.exit_code == 0
    assert len(as_json(result)) == 3
    text = check("jobs").stdout
    assert [line for line in text.splitlines() if line.startswith("jobs")] == [
        f"jobs/{name}: team-a/train: admitted" for name in ("a.yaml", "b.yml", "c.json")
    ]


def test_standard_input(check: Check) -> None:
    result = check("-", stdin=json.dumps(GOOD))
    assert result.exit_code == 0
    assert result.stdout.startswith("standard input: team-a/train: admitted\n")


def test_namespaces(check: Check) -> None:
    homeless = changed({"metadata.namespace": REMOVE})
    assert as_json(check("a.yaml", "-o", "json", a_yaml=homeless))[0]["namespace"] == "default"
    assert as_json(check("a.yaml", "-o", "json", "-n", "team-b"))[0]["namespace"] == "team-b"
    assert as_json(check("a.yaml", "-o", "json", "-n", "team-b", a_yaml=GOOD))[0]["namespace"] == "team-a"


def test_the_namespace_is_that_of_the_context(check: Check, tmp_path: Path) -> None:
    job = {**GOOD, "metadata": {"name": "train"}}
    with fake_api() as api:
        contexts = [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team-z"}}]
        config = str(kubeconfig(tmp_path / "config", api.url, contexts=contexts))
        fields = {"apiVersion": {}, "kind": {}, "spec": {"x-kubernetes-preserve-unknown-fields": True}}
        schema = {"properties": fields, "x-kubernetes-group-version-kind": [{"kind": "MPIJob"}]}
        api.objects[published_schema.OPENAPI] = {"components": {"schemas": {"MPIJob": schema}}}
        result = check("a.yaml", "--kubeconfig", config, a_yaml=job)
        assert result.stdout.startswith("a.yaml: team-z/train: ")
        asked = [path for _, path in api.calls if "/namespaces/team-" in path]
        assert asked
        assert all("/namespaces/team-z" in path for path in asked)
        given = check("a.yaml", "--kubeconfig", config, "--namespace", "team-a", a_yaml=job)
        assert given.stdout.startswith("a.yaml: team-a/train: ")


def test_a_namespace_that_is_not_there(check: Check) -> None:
    job = {**GOOD, "metadata": {"name": "train"}}
    result = check("a.yaml", "--cluster", "c.yaml", "-n", "taem-a", a_yaml=job, c_yaml=NAMESPACE)
    assert result.exit_code == 0
    said = '"taem-a" does not exist, but team-a does; the API server takes no job there before it is created'
    assert f"  warning: namespace: {said}\n" in result.stdout
    result = check("a.yaml", "--cluster", "c.yaml", "-n", "other", a_yaml=job, c_yaml=NAMESPACE)
    said = '"other" does not exist; the API server takes no job there before it is created'
    assert f"  warning: namespace: {said}\n" in result.stdout
    assert "namespace:" not in check("a.yaml", "--cluster", "c.yaml", "-n", "team-a").stdout
    assert "namespace:" not in check("a.yaml", "-n", "other").stdout


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


def test_the_policies_in_the_file_of_the_cluster_count(check: Check) -> None:
    policy = configmap("base", f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    only_b = configmap("b", f"{POLICY}priority: 1\nnamespaces: {{matchLabels: {{x: z}}}}\nmode: warn")
    items = {"kind": "List", "items": [NAMESPACE, policy, only_b]}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=items)
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout
    assert "policies" not in result.stderr
    assert "limitranges, localqueues, nodes" in result.stderr
    assert "(not in c.yaml)" in result.stderr
    assert check("a.yaml", "--cluster", "c.yaml", "--policy-namespace", "other").exit_code == 0
    assert check("a.yaml", "--cluster", "c.yaml", "--policy", "p.yaml", p_yaml=POLICY).exit_code == 0


def test_why_something_is_not_known_is_what_the_snapshot_says(check: Check) -> None:
    unknown = {"nodes in team-a": "forbidden: no", "localqueues": "not installed", "policies": "gone"}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "ClusterSnapshot", "known": {}, "unknown": unknown}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=head)
    assert "not judged: what depends on nodes (no permission to read them)\n" in result.stderr
    assert "not judged: what depends on policies (gone)\n" in result.stderr
    assert "localqueues" not in result.stderr, "the service knows no more of them"


def test_who_submits_the_job_is_unknown_where_exemptions_ask(check: Check) -> None:
    exempt = "exemptions: [{rules: [images], users: [ann], reason: x}]"
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=POLICY + exempt)
    assert ", the user's exemptions (no cluster is known" in result.stderr


def test_a_job_of_another_namespace_is_another_job(check: Check) -> None:
    stored = changed({"metadata.namespace": "team-b", "spec.slotsPerWorker": 1})
    assert check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=stored).exit_code == 0


def in_configmap(document: str) -> str:
    """As the ready-made policies are shipped."""
    head = "# For all.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: few}\ndata:\n  policy.yaml: |\n"
    return head + indent(document, "    ")


@pytest.mark.parametrize(
    "text",
    [
        in_configmap(f"{POLICY}rules: {{worker-count: {{max: 3}}}}"),
        json.dumps(configmap("few", f"{POLICY}rules: {{worker-count: {{max: 3}}}}")),
    ],
)
def test_a_policy_in_its_configmap(check: Check, text: str) -> None:
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=text)
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (in_configmap(f"{POLICY}mode: x\n"), "p.yaml: line 9: mode: must be enforce, warn or audit"),
        (json.dumps(configmap("few", f"{POLICY}mode: x\n")), "p.yaml: mode: must be enforce, warn or audit"),
        (
            "kind: ConfigMap\ndata: {a.yaml: x}",
            "p.yaml: the document: is missing: it belongs under the key policy.yaml",
        ),
        ("kind: ConfigMap\ndata: 5", "p.yaml: the document: is missing: it belongs under the key policy.yaml of data"),
        ("kind: ConfigMap\ndata: {policy.yaml: {mode: warn}}", "p.yaml: the document: must be text: write"),
        (f"{POLICY}mode: x\n---\n{POLICY}priority: x", "p.yaml: line 7: priority: "),
        ("kind: ConfigMap\n".encode("utf-16"), "p.yaml: the document: "),
        (b"kind: ConfigMap\ndata: {policy.yaml: \xff}", "p.yaml: the document: "),
    ],
)
def test_a_broken_policy_in_its_configmap(check: Check, text: str | bytes, said: str) -> None:
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_several_policies_in_one_file_layer_in_every_namespace(check: Check) -> None:
    low = in_configmap(f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    high = f"{POLICY}priority: 5\nnamespaces: {{matchLabels: {{a: b}}}}\nrules: {{gpus: {{max: 1}}}}"
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=f"{high}\n---\n{low}")
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout
    assert "2 GPUs, at most 1 allowed" in result.stdout


def test_policy(check: Check) -> None:
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout


@pytest.mark.parametrize(
    ("files", "arguments", "errors"),
    [
        ({}, ["none.yaml"], ["none.yaml: no such file or directory"]),
        ({}, ["a\0b"], ["a\N{REPLACEMENT CHARACTER}b: embedded null byte"]),
        ({"a_yaml": NAMESPACE}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"a_yaml": ""}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"a_yaml": "3"}, ["a.yaml"], ["a.yaml: is a number, not a Kubernetes object"]),
        ({"a_yaml": "text"}, ["a.yaml"], ["a.yaml: is text, not a Kubernetes object"]),
        ({"a_yaml": "- 1\n- 2"}, ["a.yaml"], ["a.yaml: is a list, not a Kubernetes object"]),
        ({"a_yaml": "kind: A\n---\n- 1"}, ["a.yaml"], ["a.yaml: document 2: is a list, not a Kubernetes object"]),
        ({"a_yaml": {"kind": 3}}, ["a.yaml"], ["a.yaml: has no kind, so it is not a Kubernetes object"]),
        (
            {"a_yaml": {"kind": "List", "items": [GOOD, {"kind": "MPIJobList", "items": [3]}]}},
            ["a.yaml"],
            ["a.yaml: items[1]: items[0]: is a number, not a Kubernetes object"],
        ),
        ({"a_yaml": "a: 1\na: 2"}, ["a.yaml"], ['a.yaml: line 2, column 1: the key "a" is there twice']),
        ({"a_yaml": "a: .nan"}, ["a.yaml"], ["a.yaml: line 1, column 4: .nan is a number that JSON does not have"]),
        (
            {"a_yaml": b"\x7fELF\x02\x00"},
            ["a.yaml"],
            ["a.yaml: is not text: control characters are not allowed at position 0"],
        ),
        ({"a_yaml": b"\xff\xfe"}, ["a.yaml"], ["a.yaml: is not text in UTF-8"]),
        ({"d__a_txt": "x"}, ["d"], ["d: no .json, .yaml, .yml files in this directory"]),
        (
            {"a_yaml": "{", "d__b_yaml": "]", "d__c_yaml": "}"},
            ["none.yaml", "a.yaml", "d"],
            [
                "none.yaml: no such file or directory",
                "a.yaml: line 2, column 1: did not find expected node content",
                "d/b.yaml: line 1, column 1: did not find expected node content",
                "d/c.yaml: line 1, column 1: did not find expected node content",
            ],
        ),
        ({"a_yaml": GOOD}, ["a.yaml", "--policy", "p.yaml"], ["p.yaml: no such file or directory"]),
        (
            {"a_yaml": GOOD, "p_yaml": f"{POLICY}rules: {{worker-count: {{max: 0, what: 1}}}}"},
            ["a.yaml", "--policy", "p.yaml"],
            [
                "p.yaml: line 3: rules.worker-count.max: must be at least 1 (it is 0)",
                "p.yaml: line 3: rules.worker-count.what: is not a setting; accepted: action, min, max",
            ],
        ),
        ({"a_yaml": GOOD}, ["a.yaml", "--cluster", "c.yaml"], ["c.yaml: no such file or directory"]),
        (
            {"a_yaml": GOOD, "c_yaml": "]"},
            ["a.yaml", "--cluster", "c.yaml"],
            ["c.yaml: line 1, column 1: did not find expected node content"],
        ),
        (
            {"a_yaml": GOOD, "c_yaml": {**NAMESPACE, "metadata": {"name": "x", "labels": 3}}},
            ["a.yaml", "--cluster", "c.yaml"],
            ['c.yaml: Namespace "x": metadata.labels: must be a mapping, not a whole number'],
        ),
    ],
)
def test_unusable_input(check: Check, files: dict[str, Any], arguments: list[str], errors: list[str]) -> None:
    result = check(*arguments, **files)
    assert result.stderr == "".join(f"error: {error}\n" for error in errors)
    assert result.exit_code == 2


def test_an_unreadable_file(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    check(a_yaml=GOOD)
    monkeypatch.setattr(Path, "open", refuse)
    result = check("a.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: a.yaml: permission denied\n")


def test_a_file_without_end(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_BYTES", 2**20)
    result = check("/dev/zero")
    assert (result.exit_code, result.stderr) == (2, "error: /dev/zero: is larger than 1 MiB\n")


def test_usable_files_are_checked_beside_unusable_ones(check: Check) -> None:
    result = check("none.yaml", "a.yaml", "-o", "json", a_yaml=changed({"Worker.replicas": 1}))
    assert result.exit_code == 2
    assert [verdict["allowed"] for verdict in as_json(result)] == [False]


def test_a_pipe_is_a_file(check: Check) -> None:
    reader, writer = os.pipe()
    os.write(writer, json.dumps(GOOD).encode())
    os.close(writer)
    assert check(f"/dev/fd/{reader}").exit_code == 0
    os.close(reader)


def test_control_characters_do_not_reach_the_terminal(check: Check) -> None:
    job = changed(
        {"metadata.name": "\x1b]0;owned\x07", "metadata.labels": {"training.kubeflow.org/job-name": "\x1b[2J"}}
    )
    for arguments in (["a.yaml"], ["a.yaml", "-o", "json"]):
        result = check(*arguments, a_yaml=job)
        assert result.exit_code == 1
        assert "\x1b" not in result.output
        assert "\x07" not in result.output


@pytest.mark.parametrize(
    "metadata", [None, 3, [], "x", {"name": 3}, {"name": None}, {"name": ["x"], "namespace": {}, "labels": 3}]
)
def test_metadata_of_any_shape(check: Check, metadata: object) -> None:
    result = check("a.yaml", "-o", "json", a_yaml={**GOOD, "metadata": metadata})
    assert result.exit_code == 1
    assert as_json(result)[0]["name"] == ""


@PROPERTY
@given(st.lists(mangled_jobs() | json_values(), max_size=3), st.lists(mangled_jobs(), max_size=2))
def test_no_input_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[Any], stored: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.yaml").write_text("\n---\n".join(map(json.dumps, jobs)))
    (folder / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, stored)))
    for arguments in ([], ["--cluster", str(folder / "cluster.yaml")]):
        command = ["check", str(folder / "jobs.yaml"), "-o", "json", *arguments]
        result = CliRunner().invoke(main, command, catch_exceptions=False)
        assert result.exit_code in {0, 1, 2}
        assert result.exit_code == 2 or (result.exit_code == 0) == all(v["allowed"] for v in as_json(result))


def test_yaml_written_by_hand(check: Check) -> None:
    text = yaml.dump(GOOD).replace("replicas: 4", "replicas: four")
    result = check("a.yaml", a_yaml=text)
    assert "spec.mpiReplicaSpecs[Worker].replicas: must be a whole number, not text [schema]" in result.stdout


def test_an_exemption_that_has_ended_excuses_nobody(check: Check) -> None:
    policy = POLICY + "exemptions: [{rules: [worker-count], namespaces: [team-a], reason: r, expires: %s}]"
    job = changed({"Worker.replicas": 1})
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2001-01-01").exit_code == 1
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2999-01-01").exit_code == 0


def test_which_policies_decided_is_said(check: Check) -> None:
    text = f"{HEADER}rules: {{worker-count: {{max: 3}}}}\n"
    result = check("job.yaml", "--policy", "policy.yaml", job_yaml=GOOD, policy_yaml=text)
    digest = sha256(text.encode()).hexdigest()
    assert f"decided by: policy sha256:{digest[:12]}" in result.stdout
    (verdict,) = as_json(check("job.yaml", "--policy", "policy.yaml", "-o", "json", job_yaml=GOOD, policy_yaml=text))
    assert verdict["policies"] == [{"name": "policy", "resourceVersion": "", "digest": digest}]
    (verdict,) = as_json(check("job.yaml", "-o", "json", job_yaml=GOOD))
    assert verdict["policies"] == []
