"""A warning always names the rule, and contains as much of the field and the fault as possible."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.devices import claim_template, claims, exactly
from tests.support.jobs import changed
from tests.support.rule_checks import defaulted
from tests.support.strategies import PROPERTY
from webhook import injections
from webhook.admission.decision import Decision
from webhook.admission.limits import MAX_IDS_CHARACTERS, MAX_WARNING_CHARACTERS
from webhook.admission.messages import Finding, denial, injected, shorten
from webhook.admission.validate import rejected_gpus
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.predict.pod_security import Level
from webhook.predict.pod_security.checks import REGISTRY
from webhook.rules import Violation

ROLE = "spec.mpiReplicaSpecs[Launcher]"
CONTEXT = f"{ROLE}.template.spec.containers[0].securityContext"


def warning(path: str, message: str, fix: str = "Mend it.", rule: str = "some-rule") -> str:
    return Finding(rule, Violation(path, message, fix=fix)).warning


@pytest.mark.parametrize(
    ("path", "message", "expected"),
    [
        ("spec.a", "is bad", "spec.a: is bad. Mend it. [some-rule]"),
        ("spec.a", "x" * 96, f"spec.a: {'x' * 96} [some-rule]"),
        ("spec.a", f"{'x' * 80} (it is {'y' * 20})", f"spec.a: {'x' * 80}. Mend it. [some-rule]"),
        ("spec.a", f"{'x' * 93} (it is {'y' * 20})", f"spec.a: {'x' * 93} [some-rule]"),
        (
            f"{CONTEXT}.runAsUser",
            "x" * 30,
            f"{ROLE}...[0].securityContext.runAsUser: {'x' * 30}. Mend it. [some-rule]",
        ),
        (f"{CONTEXT}.runAsUser", "x" * 60, f"{ROLE}...runAsUser: {'x' * 60} [some-rule]"),
        (CONTEXT, "x" * 60 + "y" * 30, f"{ROLE}: {'x' * 44}...{'y' * 29} [some-rule]"),
        (
            "spec.mpiReplicaSpecs[Worker]",
            "resource rdma/rdma_shared_device_a of the job is unknown, but known is rdma/hca_shared_devices_a",
            "spec.mpiReplicaSpecs[Worker]: resource rdma/rdma_shared_device_a of the job..."
            "n is rdma/hca_shared_devices_a [some-rule]",
        ),
    ],
)
def test_long_warning_is_shortened(path: str, message: str, expected: str) -> None:
    assert warning(path, message) == expected


def test_warning_about_pod_security_names_level_and_check() -> None:
    fault = 'would violate PodSecurity "restricted:latest": {} (container "launcher" must set something)'
    for check in REGISTRY.values():
        text = warning(f"{CONTEXT}.x", fault.format(check.id), rule="pod-security")
        assert text.startswith("spec.mpiReplicaSpecs[Launcher]")
        assert str(Level.RESTRICTED) in text
        assert text.endswith(" [pod-security]")
        assert check.id[:22] in text


@pytest.mark.timeout(20)
def test_path_with_very_many_parts_is_shortened() -> None:
    path = f"{ROLE}.template.spec.nodeSelector[x]{'.a' * 200_000}]"
    shown = warning(path, "no node has this label")
    assert len(shown) <= MAX_WARNING_CHARACTERS
    assert shown.startswith(f"{ROLE}...a.a")


@PROPERTY
@given(st.text(".[]ab", max_size=150), st.text("( x", max_size=150))
def test_warning_fits_for_any_path_and_fault(path: str, message: str) -> None:
    text = warning(path, message)
    assert text.endswith(" [some-rule]")
    assert len(text) <= MAX_WARNING_CHARACTERS or len(path) > 50


LONG = Violation(
    "spec.a", "Heading\nDetails: so much (of it) is bad.\nMore: 3", fix="Suggestions:\n1. Mend it", of_lines=True
)
SHORT = Violation("spec.b", "is bad", fix="Mend it.")


def test_fault_of_several_lines_is_shown_unchanged() -> None:
    finding = Finding("some-rule", LONG)
    assert finding.sentence == f"{LONG.message}\n\n{LONG.fix}\n[some-rule]"
    assert finding.warning == "spec.a: so much (of it) is bad [some-rule]"
    head = 'MPIJob "train" was rejected: 1 problem\n1. spec.a [some-rule]\n'
    assert denial("train", [finding]) == f"{head}{LONG.message}\n\n{LONG.fix}"


def test_fault_of_several_lines_is_indented_among_other_faults() -> None:
    findings = [Finding("some-rule", LONG), Finding("other-rule", SHORT)]
    assert denial("train", findings).splitlines() == [
        'MPIJob "train" was rejected: 2 problems',
        "1. spec.a [some-rule]",
        "   Heading",
        "   Details: so much (of it) is bad.",
        "   More: 3",
        "",
        "   Suggestions:",
        "   1. Mend it",
        "2. spec.b: is bad [other-rule]",
        "   Mend it.",
    ]


def test_text_after_dropped_parentheses_stays() -> None:
    text = warning("spec.a", f"{'x' * 60} (it is {'y' * 40}), but z")
    assert text == f"spec.a: {'x' * 60}, but z. Mend it. [some-rule]"
    assert warning("spec.a", "\n") == "spec.a: \\n. Mend it. [some-rule]"


FULL = " (kubectl get mpijob NAME -o yaml; mpijob-webhook explain NAME)"


@pytest.mark.parametrize(
    ("briefs", "expected"),
    [
        ({"istio": ""}, f"injected: istio{FULL}"),
        ({"istio": "", "job-timeout": "24h", "a": "b"}, f"injected: job-timeout 24h, a b, istio{FULL}"),
        ({"x" * 60: "", "y": ""}, f"injected: {'x' * 60}, y (mpijob-webhook explain NAME)"),
        ({"x" * 60: "", "job-timeout": "24h", "y": "z" * 20}, f"injected: job-timeout 24h, y {'z' * 20}, {'x' * 60}"),
        ({"x" * 60: "", "job-timeout": "24h", "y": "z" * 40}, f"injected: job-timeout 24h, y, {'x' * 60}"),
        ({"x" * 60: "", "y" * 60: "", "z": "1"}, f"injected: z 1, {'x' * 60}, {'y' * 60}"),
        (
            dict.fromkeys((str(n) * 40 for n in range(9)), ""),
            f"injected: {', '.join(str(n) * 40 for n in range(5))} and 4 more",
        ),
        ({"x": "y" * 300}, "injected: x"),
    ],
)
def test_all_injections_are_on_one_line(briefs: dict[str, str], expected: str) -> None:
    assert injected(briefs) == expected
    assert len(expected) <= MAX_IDS_CHARACTERS


@pytest.mark.parametrize(
    ("briefs", "expected"),
    [
        ({"istio": ""}, f"injected: istio (mpijob-webhook explain NAME); {'h' * 60}"),
        ({"x" * 40: "", "y": "24h"}, f"injected: y 24h, {'x' * 40}; {'h' * 60}"),
        (
            dict.fromkeys((str(n) * 40 for n in range(9)), ""),
            f"injected: {', '.join(str(n) * 40 for n in range(4))} and 5 more; {'h' * 60}",
        ),
    ],
)
def test_hint_stays_when_the_line_is_cut(briefs: dict[str, str], expected: str) -> None:
    assert injected(briefs, ["h" * 60]) == expected
    assert len(expected) <= MAX_IDS_CHARACTERS


def test_ids_of_many_injections_are_not_cut() -> None:
    of_platform = {"host-network", "image-pull-secrets", "no-disruption", "node-selector", "tolerations"}
    ids = [each for each in injections.REGISTRY if each not in of_platform and not injections.REGISTRY[each].quiet]
    assert injected(dict.fromkeys(ids, "")) == f"injected: {', '.join(ids)}"


@pytest.mark.parametrize("letter", ["é", "日", "😀", "\ud800"])
def test_length_is_counted_in_bytes_as_in_the_api_server(letter: str) -> None:
    assert len(shorten(letter * 200).encode()) <= MAX_WARNING_CHARACTERS
    shown = Finding("a-rule", Violation("spec.a", letter * 200, fix="Mend it.")).warning
    assert len(shown.encode()) <= MAX_WARNING_CHARACTERS
    assert re.fullmatch(r"spec\.a: .+\.\.\..+ \[a-rule\]", shown)


@PROPERTY
@given(st.dictionaries(st.text("ab-", min_size=1, max_size=30), st.text("x ", max_size=40), min_size=1, max_size=40))
def test_line_of_any_injections_has_a_limited_length(briefs: dict[str, str]) -> None:
    line = injected(briefs)
    assert len(line) <= MAX_IDS_CHARACTERS
    assert line.startswith("injected: ")


def test_gpus_of_a_rejected_job_include_the_devices_of_claims() -> None:
    job = defaulted(changed({**claims("pair"), "Worker.replicas": 3}))
    refused = Decision(denied=[Finding("gpus", Violation("spec", "is wrong", fix="Mend it."))])
    view = Snapshot([claim_template("pair", exactly(count=2))])
    gpus = rejected_gpus.of(refused, job, Context(operation="CREATE", namespace="team-a", username="alice", view=view))
    assert gpus == {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 6}
