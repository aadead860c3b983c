"""The commands `policy ...`: output, errors and exit codes."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support import checking
from tests.support.jobs import changed
from tests.support.namespaces import namespace
from tests.support.object_api import fake_api, kubeconfig
from tests.support.paths import MANIFESTS
from tests.support.policies import HEADER, configmap
from tests.support.read_paths import MPIJOBS, empty_lists, listed
from webhook.cli.policy.configmap import selector_of
from webhook.policy.in_force import load_policy

BASE = configmap("base", HEADER + "rules: {worker-count: {max: 8}}")
PREMIUM = configmap(
    "premium", HEADER + "priority: 1\nnamespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64}}"
)
STRICT = configmap("base", HEADER + "rules: {worker-count: {max: 3}}")
OBJECTS = (namespace("team-a", tier="premium"), namespace("team-b"), BASE, PREMIUM, changed())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, objects in {"base": [BASE], "strict": [STRICT], "cluster": OBJECTS, "none": [namespace("x")]}.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"kind": "List", "items": objects}))
    (tmp_path / "bare.yaml").write_text(HEADER + "mode: warn")
    (tmp_path / "broken.yaml").write_text(HEADER + "mode: loud")
    return tmp_path


run = partial(checking.run, "policy")


def error(result: Result) -> str:
    """The error of a command that failed. It must be a single line."""
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("error: ")


class TestValidate:
    def test_valid_documents_are_good(self) -> None:
        result = run("validate", "base.yaml", "bare.yaml")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == (
            'base.yaml: ConfigMap "base" (lines of its policy.yaml): good '
            '(for all namespaces, priority 0, mode warn (of "bare.yaml"), 1 setting)\n'
            "bare.yaml: good (for all namespaces, priority 0, mode warn, 0 settings)\n"
        )

    def test_json_output_for_an_invalid_policy_from_standard_input(self) -> None:
        result = run("validate", "-", "-o", "json", stdin=HEADER + "mode: loud")
        assert result.exit_code == 1
        (document,) = json.loads(result.stdout)["documents"]
        assert (document["title"], document["faults"][0]["line"]) == ("standard input", 3)

    def test_exit_code_is_0_for_a_policy_with_warnings(self) -> None:
        text = HEADER + "exemptions: [{rules: [gpus], users: [u], expires: 2020-01-01, reason: r}]"
        result = run("validate", "-", stdin=text)
        assert result.exit_code == 0
        assert "warning: standard input: exemptions[0] ended on 2020-01-01 and has no effect\n" in result.stdout

    def test_unusable_input_is_an_error(self) -> None:
        assert error(run("validate", "nope.yaml")) == "nope.yaml: no such file or directory"
        result = run("validate", "none.yaml")
        assert result.exit_code == 2
        assert result.stderr == "none.yaml: skipped Namespace x\nerror: no policy in none.yaml\n"
        assert run("validate").exit_code == 2


class TestEffective:
    def values(self, *arguments: str, name: str = "team-a") -> dict[str, Any]:
        result = run("effective", "--namespace", name, "-o", "json", *arguments)
        assert result.exit_code == 0
        return {value["path"]: [value["value"], value["source"]] for value in json.loads(result.stdout)["values"]}

    def test_values_come_from_the_policies_of_the_cluster(self) -> None:
        assert self.values("--cluster", "cluster.yaml")["rules.worker-count.max"] == [64, "premium"]
        assert self.values("--cluster", "cluster.yaml", name="team-b")["rules.worker-count.max"] == [8, "base"]
        elsewhere = self.values("--cluster", "cluster.yaml", "--policy-namespace", "other")
        assert elsewhere["rules.worker-count.max"] == [100, "built-in default"]

    def test_policies_from_files_are_applied(self) -> None:
        cluster = ("--cluster", "cluster.yaml")
        assert self.values(*cluster, "--policy", "strict.yaml", name="team-b")["rules.worker-count.max"] == [3, "base"]
        assert self.values(*cluster, "--policy", "strict.yaml")["rules.worker-count.max"] == [64, "premium"]
        assert self.values(*cluster, "--without", "premium")["rules.worker-count.max"] == [8, "base"]
        bare = self.values(*cluster, "--policy", "bare.yaml")
        assert bare["rules.worker-count.max"] == [64, "premium"]
        assert bare["mode"] == ["warn", "bare"]

    def test_policies_from_files_need_no_cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", "nope")
        result = run("effective", "-n", "team-a", "--policy", "strict.yaml", "--policy", "bare.yaml")
        assert result.exit_code == 0
        assert "note: the namespace's labels are unknown without --kubeconfig, or --cluster" in result.stdout

    def test_a_namespace_that_does_not_exist_is_reported(self) -> None:
        result = run("effective", "-n", "x", "--cluster", "cluster.yaml")
        assert result.exit_code == 0
        assert 'note: there is no namespace "x"\n' in result.stdout

    def test_unusable_input_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", "nope")
        assert error(run("effective", "-n", "x")) == "cannot read the kubeconfig nope: No such file or directory"
        assert error(run("effective", "-n", "x", "--cluster", "nope")) == "nope: no such file or directory"
        both = run("effective", "-n", "x", "--cluster", "cluster.yaml", "--kubeconfig", "k")
        assert error(both) == "--cluster cannot be combined with --kubeconfig, --context or --as"
        assert error(run("effective", "-n", "x", "--policy", "broken.yaml")) == (
            'broken.yaml: line 3: mode: must be enforce, warn or audit (it is "loud")'
        )
        assert run("effective").exit_code == 2


class TestDiff:
    @pytest.mark.parametrize(
        ("files", "code", "text"),
        [
            (("base.yaml", "strict.yaml"), 1, "base changes\n  rules.worker-count.max: 8 -> 3\n"),
            (("base.yaml", "base.yaml"), 0, "nothing changes\n"),
            (("base.yaml", "base.yaml", "-o", "json"), 0, "[]\n"),
            (("-", "bare.yaml"), 1, "standard input -> bare.yaml changes\n  mode: audit -> warn\n"),
        ],
    )
    def test_changed_values_are_shown(self, files: tuple[str, ...], code: int, text: str) -> None:
        result = run("diff", *files, stdin=HEADER + "mode: audit")
        assert (result.exit_code, result.stdout) == (code, text)

    @pytest.mark.parametrize("files", [("base.yaml", "broken.yaml"), ("nope.yaml", "base.yaml")])
    def test_unusable_input_is_an_error(self, files: tuple[str, str]) -> None:
        assert error(run("diff", *files))


class TestAudit:
    def test_audit_uses_the_policies_of_the_cluster(self, folder: Path) -> None:
        result = run("audit", "--cluster", "cluster.yaml")
        assert (result.exit_code, result.stderr) == (0, "")
        (folder / "c.yaml").write_text(json.dumps({"kind": "List", "items": [namespace("team-a"), STRICT, changed()]}))
        result = run("audit", "--cluster", "c.yaml")
        assert result.exit_code == 1
        assert "team-a/train: would be rejected" in result.stdout
        assert "[worker-count]" in result.stdout
        assert run("audit", "--cluster", "c.yaml", "-n", "team-b").exit_code == 0

    def test_audit_uses_changed_policies(self) -> None:
        options = ("--cluster", "cluster.yaml", "--policy", "strict.yaml", "--without", "premium")
        result = run("audit", *options, "-o", "json")
        assert result.exit_code == 1
        value = json.loads(result.stdout)
        assert value["policies"] == ["base"]
        assert value["byRule"]["worker-count"] == {"deny": 1}

    @pytest.mark.parametrize("namespace", ["", "team-a"])
    def test_audit_reads_the_named_namespace_and_replay_reads_all_namespaces(
        self, folder: Path, namespace: str
    ) -> None:
        with fake_api() as api:
            for path, empty in empty_lists().items():
                api.objects[path] = empty
                if namespace and path.count("/") > 3:
                    parts = path.rsplit("/", maxsplit=1)
                    api.objects[f"{parts[0]}/namespaces/{namespace}/{parts[1]}"] = empty
            jobs = MPIJOBS.replace("/mpijobs", f"/namespaces/{namespace}/mpijobs") if namespace else MPIJOBS
            api.objects[jobs] = listed(changed())
            config = kubeconfig(folder / "config", api.url)
            options = ("-n", namespace) if namespace else ()
            result = run("audit", "--policy", "strict.yaml", "--kubeconfig", str(config), *options)
            assert result.exit_code == 1, result.stderr
            assert "team-a/train: would be rejected" in result.stdout
            assert {method for method, path in api.calls if "selfsubject" not in path} == {"GET"}
            assert (MPIJOBS in {path for _, path in api.calls}) == (not namespace)
            if not namespace:
                replayed = run("replay", "--policy", "strict.yaml", "--kubeconfig", str(config))
                assert "  team-a/train: worker-count\n" in replayed.stdout

    def test_unusable_input_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", "nope")
        assert error(run("audit")).startswith("cannot read the kubeconfig nope")
        assert error(run("audit", "--policy", "broken.yaml", "--cluster", "cluster.yaml"))
        assert error(run("audit", "--cluster", "cluster.yaml", "--without", "nope"))


class TestReplay:
    def test_replay_also_applies_the_policies_of_the_cluster(self) -> None:
        result = run("replay", "--policy", "strict.yaml", "--cluster", "cluster.yaml", "-o", "json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["after"] == ["base", "premium"]

    def test_policies_can_be_left_out_of_a_replay(self) -> None:
        cluster = ("--cluster", "cluster.yaml")
        result = run("replay", "--policy", "strict.yaml", "--without", "premium", *cluster)
        assert result.exit_code == 1
        assert "then: base (changed)\ngone: premium\n" in result.stdout
        assert run("replay", "--without", "premium", "--without", "base", *cluster).exit_code == 0
        assert error(run("replay", "--without", "nope", *cluster)) == (
            'there is no policy "nope" in force, only base, premium'
        )
        assert error(run("replay", *cluster)) == ("no policy to replay: name policies with --policy or --without")

    def test_bare_document_is_added_to_the_policies(self) -> None:
        result = run("replay", "--policy", "bare.yaml", "--cluster", "cluster.yaml")
        assert result.exit_code == 0
        assert "then: base, premium, bare (new)\n" in result.stdout
        assert "gone" not in result.stdout

    def test_replay_reports_changed_injections(self, folder: Path) -> None:
        (folder / "few.yaml").write_text(HEADER + "injectOnly: [labels, job-timeout]")
        result = run("replay", "--policy", "few.yaml", "--cluster", "cluster.yaml")
        assert "\nchanged injections\n" in result.stdout
        assert "\n  gpu-nodes no longer into 1 job: team-a/train\n" in result.stdout
        assert "labels" not in result.stdout
        last = result.stdout.splitlines()[-1]
        assert last.startswith("changed injections: ")
        assert "gpu-nodes no longer into 1, " in last
        value = json.loads(run("replay", "--policy", "few.yaml", "--cluster", "cluster.yaml", "-o", "json").stdout)
        assert value["injections"]["gpu-nodes"] == {"noLonger": ["team-a/train"]}
        assert value["injectionsSummary"] == last

    def test_unusable_input_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", "nope")
        assert error(run("replay", "--policy", "base.yaml")).startswith("cannot read the kubeconfig nope")
        assert error(run("replay", "--policy", "broken.yaml", "--cluster", "cluster.yaml"))
        assert run("replay", "--policy", "none.yaml", "--cluster", "cluster.yaml").exit_code == 2


class TestNew:
    def test_new_policy_can_be_applied(self) -> None:
        result = run("new", "warn", "--mode", "warn", "-l", "tier=gold,!done,a in (b, c)", "--priority", "7")
        assert result.exit_code == 0
        assert result.stdout == (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: warn\n  namespace: mpijob-webhook\n"
            "  labels:\n    training.openshift.io/mpijob-policy: 'true'\ndata:\n  policy.yaml: |\n"
            "    apiVersion: policy.training.openshift.io/v1\n    kind: MPIJobPolicy\n    priority: 7\n"
            "    namespaces:\n      matchLabels:\n        tier: gold\n      matchExpressions:\n"
            "        - key: done\n          operator: DoesNotExist\n        - key: a\n          operator: In\n"
            "          values:\n            - b\n            - c\n    mode: warn\n"
        )
        assert run("validate", "-", stdin=result.stdout).exit_code == 0
        replayed = run("replay", "--policy", "-", "--cluster", "cluster.yaml", stdin=result.stdout)
        assert "then: base, premium, warn (new)" in replayed.stdout

    def test_new_policy_starts_from_a_file(self, folder: Path) -> None:
        (folder / "audit.yaml").write_text((MANIFESTS / "policies" / "audit-only.yaml").read_text())
        text = run("new", "warn", "--from", "audit.yaml", "--mode", "warn", "-l", "!ready").stdout
        assert text.partition("kind: MPIJobPolicy\n")[2] == (
            "    priority: 1000000\n    mode: warn\n    injectOnly: []\n    sshKeys: operator\n"
            "    namespaces:\n      matchExpressions:\n        - key: ready\n          operator: DoesNotExist\n"
        )
        only = run("new", "some", "--inject-only", "labels, mpi-env", "--policy-namespace", "mine").stdout
        assert "    injectOnly:\n      - labels\n      - mpi-env\n" in only
        assert "  namespace: mine\n" in only
        assert "injectOnly: []" in run("new", "none", "--inject-only", "").stdout

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["My_Policy"], 'the name "My_Policy" contains "M"'),
            (["a", "--policy-namespace", "x.y"], '--policy-namespace "x.y" contains "."'),
            (["a", "-l", "tier gold"], '--selector: "tier gold" is not key=value, key!=value, key in (a,b)'),
            (["a", "-l", "a,,b"], "--selector: an empty condition is not"),
            (["a", "-l", "a=b,a=c"], "--selector: one label cannot have two values"),
            (["a", "-l", "a=%"], "--selector: matchLabels[a]: the label value contains"),
            (["a", "--inject-only", "istios"], "injectOnly"),
            (["a", "--priority", "9999999"], "priority"),
            (["a", "--from", "broken.yaml"], "broken.yaml"),
            (["a", "--from", "cluster.yaml"], "cluster.yaml has 2 policies, and --from takes one"),
            (["a", "--from", "nope.yaml"], "nope.yaml"),
        ],
    )
    def test_invalid_option_is_rejected(self, arguments: list[str], message: str) -> None:
        result = run("new", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("", None),
        ("a==b", {"matchLabels": {"a": "b"}}),
        ("a=", {"matchLabels": {"a": ""}}),
        ("a!=b", {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
        ("x.y/a notin (b,c)", {"matchExpressions": [{"key": "x.y/a", "operator": "NotIn", "values": ["b", "c"]}]}),
        (
            " a , ! b ",
            {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]},
        ),
    ],
)
def test_selector_has_kubectls_syntax(text: str, selector: Any) -> None:
    assert selector_of(text) == selector


def test_schema_is_valid_json() -> None:
    result = run("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "MPIJobPolicy"


def test_init_writes_a_valid_policy_with_the_defaults() -> None:
    text = run("init").stdout
    assert run("validate", "-", stdin=text).exit_code == 0
    assert load_policy(text).document == load_policy(None).document
    (as_configmap := Path("cm.yaml")).write_text(json.dumps(configmap("init", text)))
    assert run("validate", str(as_configmap)).exit_code == 0
