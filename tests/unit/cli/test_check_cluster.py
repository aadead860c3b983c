"""`mpijob-webhook check` with namespaces, policies, and a file that has the objects of a cluster."""

import json
from hashlib import sha256
from pathlib import Path
from textwrap import indent

import pytest

from tests.support.checking import NAMESPACE, POLICY, Check, as_json
from tests.support.jobs import GOOD, REMOVE, changed
from tests.support.kueue_objects import CONFIG, Json, cluster_queue, config, local_queue
from tests.support.object_api import MPIJOB_SCHEMA, fake_api, kubeconfig
from tests.support.policies import HEADER, configmap
from tests.support.quota_objects import quota
from webhook.cli import world_sources


def test_namespace_comes_from_the_job_or_else_from_the_option_or_else_is_default(check: Check) -> None:
    homeless = changed({"metadata.namespace": REMOVE})
    assert as_json(check("a.yaml", "-o", "json", a_yaml=homeless))[0]["namespace"] == "default"
    assert as_json(check("a.yaml", "-o", "json", "-n", "team-b"))[0]["namespace"] == "team-b"
    assert as_json(check("a.yaml", "-o", "json", "-n", "team-b", a_yaml=GOOD))[0]["namespace"] == "team-a"


def test_default_namespace_is_from_the_context_of_the_kubeconfig(check: Check, tmp_path: Path) -> None:
    job = {**GOOD, "metadata": {"name": "train"}}
    with fake_api() as api:
        contexts = [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team-z"}}]
        config = str(kubeconfig(tmp_path / "config", api.url, contexts=contexts))
        api.objects[world_sources.OPENAPI] = MPIJOB_SCHEMA
        result = check("a.yaml", "--kubeconfig", config, a_yaml=job)
        assert result.stdout.startswith("a.yaml: team-z/train: ")
        namespaces = {path.split("/namespaces/")[1][:6] for _, path in api.calls if "/namespaces/team-" in path}
        assert namespaces == {"team-z"}
        result = check("a.yaml", "--kubeconfig", config, "--namespace", "team-a", a_yaml=job)
        assert result.stdout.startswith("a.yaml: team-a/train: ")


def test_missing_namespace_is_a_warning(check: Check) -> None:
    job = {**GOOD, "metadata": {"name": "train"}}
    result = check("a.yaml", "--cluster", "c.yaml", "-n", "taem-a", a_yaml=job, c_yaml=NAMESPACE)
    assert result.exit_code == 0
    warning = '"taem-a" does not exist; did you mean team-a?'
    assert f"  warning: namespace: {warning}\n" in result.stdout
    result = check("a.yaml", "--cluster", "c.yaml", "-n", "other", a_yaml=job, c_yaml=NAMESPACE)
    warning = '"other" does not exist. The API server rejects jobs in it until it is created'
    assert f"  warning: namespace: {warning}\n" in result.stdout
    assert "namespace:" not in check("a.yaml", "--cluster", "c.yaml", "-n", "team-a").stdout
    assert "namespace:" not in check("a.yaml", "-n", "other").stdout


def test_policies_in_the_cluster_file_apply(check: Check) -> None:
    policy = configmap("base", f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    only_b = configmap("b", f"{POLICY}priority: 1\nnamespaces: {{matchLabels: {{x: z}}}}\nmode: warn")
    items = {"kind": "List", "items": [NAMESPACE, policy, only_b]}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=items)
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout
    assert " policies" not in result.stderr
    assert "limitranges, localqueues, networkpolicies, nodes" in result.stderr
    assert "(not in c.yaml)" in result.stderr
    assert check("a.yaml", "--cluster", "c.yaml", "--policy-namespace", "other").exit_code == 0
    assert check("a.yaml", "--cluster", "c.yaml", "--policy", "p.yaml", p_yaml=POLICY).exit_code == 0


def test_policy_with_a_selector_is_ignored_and_reported_if_the_namespace_labels_are_unknown(check: Check) -> None:
    policy = configmap("base", f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    selective = configmap("selective", f"{POLICY}priority: 1\nnamespaces: {{matchLabels: {{x: z}}}}\nmode: warn")
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml={"kind": "List", "items": [policy, selective]})
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout
    assert 'labels of namespace "team-a" unknown: these policies are ignored: selective\n' in result.stderr
    result = check("a.yaml", "--cluster", "c.yaml", c_yaml={"kind": "List", "items": [NAMESPACE, policy, selective]})
    assert "policies are ignored" not in result.stderr


def test_reason_for_missing_objects_comes_from_the_snapshot(check: Check) -> None:
    unknown = {"nodes in team-a": "forbidden: no", "localqueues": "not installed", "policies": "gone"}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "ClusterSnapshot", "known": {}, "unknown": unknown}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=head)
    assert "not judged: rules that need nodes (no permission to read them)\n" in result.stderr
    assert "not judged: rules that need policies (gone)\n" in result.stderr
    assert "localqueues" not in result.stderr, "the service does not have this information either"


def in_configmap(document: str) -> str:
    """Return the YAML text of a ConfigMap with this policy."""
    head = "# For all.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: few}\ndata:\n  policy.yaml: |\n"
    return head + indent(document, "    ")


@pytest.mark.parametrize(
    "text",
    [
        in_configmap(f"{POLICY}rules: {{worker-count: {{max: 3}}}}"),
        json.dumps(configmap("few", f"{POLICY}rules: {{worker-count: {{max: 3}}}}")),
    ],
)
def test_policy_in_a_configmap_is_read(check: Check, text: str) -> None:
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=text)
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_broken_policy_in_a_configmap_is_an_error(check: Check, text: str | bytes, message: str) -> None:
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_several_policies_in_one_file_apply_to_every_namespace(check: Check) -> None:
    low = in_configmap(f"{POLICY}rules: {{worker-count: {{max: 3}}}}")
    high = f"{POLICY}priority: 5\nnamespaces: {{matchLabels: {{a: b}}}}\nrules: {{gpus: {{max: 1}}}}"
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=f"{high}\n---\n{low}")
    assert result.exit_code == 1
    assert "4 workers, at most 3 allowed" in result.stdout
    assert "2 GPUs, at most 1 allowed" in result.stdout


def test_policies_of_the_verdict_are_listed(check: Check) -> None:
    text = f"{HEADER}rules: {{worker-count: {{max: 3}}}}\n"
    result = check("job.yaml", "--policy", "policy.yaml", job_yaml=GOOD, policy_yaml=text)
    digest = sha256(text.encode()).hexdigest()
    assert f"decided by: policy sha256:{digest[:12]}" in result.stdout
    (verdict,) = as_json(check("job.yaml", "--policy", "policy.yaml", "-o", "json", job_yaml=GOOD, policy_yaml=text))
    assert verdict["policies"] == [{"name": "policy", "resourceVersion": "", "digest": digest}]
    (verdict,) = as_json(check("job.yaml", "-o", "json", job_yaml=GOOD))
    assert verdict["policies"] == []


KUEUE_LABEL = "metadata.labels.kueue\\.x-k8s\\.io/queue-name"


@pytest.mark.parametrize(
    ("more", "denied"),
    [
        ([local_queue("train", "gpus")], False),
        ([local_queue("train", "gpus"), cluster_queue("gpus"), config(), NAMESPACE], False),
        ([], False),  # a file without Kueue's objects does not show whether Kueue is installed
        ([local_queue("train", "gpus"), config(text=CONFIG.replace(", kubeflow.org/mpijob", ""))], True),
    ],
)
def test_job_in_a_queue_is_denied_for_a_quota_only_if_kueue_does_not_suspend_jobs(
    check: Check, more: list[Json], denied: bool
) -> None:
    """Kueue's webhook suspends a job in a queue before this webhook judges it. A suspended job only gets a warning."""
    busy = quota({"requests.nvidia.com/gpu": 8}, {"requests.nvidia.com/gpu": 8})
    files = {"a_yaml": changed({KUEUE_LABEL: "train"}), "c_yaml": {"kind": "List", "items": [busy, *more]}}
    (verdict,) = as_json(check("a.yaml", "--cluster", "c.yaml", "-o", "json", **files))
    assert any("resource-quota" in warning for warning in verdict["warnings"]) is not denied
    assert ("resource-quota" in {cause["rule"] for cause in verdict["causes"]}) is denied
