"""User text is escaped in messages: it cannot forge lines, change colours or reverse the direction of text."""

import copy
import json
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.corpus import CORPUS
from tests.support.injecting import mutate
from tests.support.jobs import request
from tests.support.policies import HEADER
from tests.support.strategies import COMPLETE, PROPERTY, paths, replaced
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding, denial, warnings
from webhook.api.text import visible
from webhook.cli import files
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.policy.document import PolicyError, PolicyFault
from webhook.rules import REGISTRY, Violation

FORGED = "7. spec.b: is bad [images]"
EVIL = f"a\n{FORGED}\r\x1b[31m\u202e\u2028\x85b"
VIEWS = ["nothing", "cluster"]
# Rules that quote text from a job. Each of them must have a finding that contains FORGED.
REPEATING = {"accelerator-available", "images", "pod-security", "priority", "references", "upstream-contract"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: ümlaut 你好", "plain: ümlaut 你好"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31m\x85", "\\x1b[31m\\x85"),
        ("\u202e\u2028\u200b", "\\u202e\\u2028\\u200b"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
    ],
)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@PROPERTY
@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from([*REGISTRY]))
def test_finding_of_any_rule_is_escaped(name: str, path: str, message: str, fix: str, rule: str) -> None:
    """Text is escaped where findings are created, so no rule can forget to escape it."""
    finding = Finding(rule, Violation(path, message, fix=fix))
    for text in (finding.warning, finding.sentence, *denial(name, [finding]).split("\n"), finding.violation.path):
        assert text.isprintable()
    assert len(denial(name, [finding]).split("\n")) == 3
    assert str(PolicyFault(path, message)).isprintable()


def jobs() -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield each path with a job that has EVIL at this path, as a value or as an additional key of a mapping."""
    yield from replaced(EVIL)
    for path in ((), *paths(COMPLETE)):
        job: Any = copy.deepcopy(COMPLETE)
        place = job
        for token in path:
            place = place[token]
        if isinstance(place, dict):
            place[EVIL] = next(iter(place.values()), "x")
            yield (*path, EVIL), job


@cache
def cluster() -> Snapshot:
    manifests, _ = files.load([str(CORPUS / "cluster.yaml")])
    return Snapshot(manifest.document for manifest in manifests)


def texts(decision: Decision) -> Iterator[str]:
    response = decision.response("u")
    yield from response.warnings or ()
    yield from (response.audit_annotations or {}).values()
    if response.status is not None:
        yield from response.status.message.split("\n")
        for cause in response.status.details.causes if response.status.details else ():
            yield cause.field
            yield from cause.message.split("\n")


@pytest.mark.parametrize("known", VIEWS)
def test_text_from_any_field_of_a_job_is_escaped(known: str) -> None:
    view = NothingKnown() if known == "nothing" else cluster()
    policy = pipelines.load_policy(None)
    repeating: set[str] = set()
    for place, job in jobs():
        mutated = mutate(job, view=view)
        sent = msgspec.structs.replace(request(mutated.document or job), namespace="restricted")
        decision = pipelines.validate(sent, policy=policy, view=view, today=date.min)
        for text in (*texts(mutated), *texts(decision), *mutated.notes, *mutated.cautions):
            assert text.isprintable(), (place, text)
            assert not text.lstrip().startswith(FORGED), (place, text)
        json.dumps([decision.message, decision.warnings])
        findings = [*decision.denied, *decision.warned, *decision.audited]
        repeating |= {each.rule for each in findings if FORGED in f"{each.violation.path}{each.sentence}"}
    if known == "cluster":
        assert repeating >= REPEATING, REPEATING - repeating


def test_text_from_a_policy_is_escaped_in_warnings_and_errors() -> None:
    assert warnings([f'there is no namespace "{EVIL}"'])[0].isprintable()
    for text in (f"namespaces: {{matchLabels: {{{json.dumps(EVIL)}: x}}}}", f"mode: {json.dumps(EVIL)}"):
        with pytest.raises(PolicyError) as caught:
            pipelines.load_policy(HEADER + text)
        assert all(line.isprintable() for line in str(caught.value).split("\n"))
        assert not any(line.lstrip().startswith(FORGED) for line in str(caught.value).split("\n"))
