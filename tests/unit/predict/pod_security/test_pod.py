"""Every valid template can be decoded. Invalid JSON and values of a wrong type are rejected."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.any_job import any_value
from tests.support.strategies import PROPERTY, json_values
from webhook.api.shape import ShapeError
from webhook.predict.pod_security import LATEST, Level, PodTemplate, Version, evaluate
from webhook.predict.pod_security.pod import convert, decode
from webhook.predict.pod_security.subject import go_quoted

WORDS = st.sampled_from(
    ["unconfined", "Unconfined", "RuntimeDefault", "windows", "ALL", "Default", "container_t", "\x00"]
)
ANNOTATIONS = (
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/a",
    "container.apparmor.security.beta.kubernetes.io/a",
)
TEMPLATES = any_value(
    PodTemplate,
    annotations=st.dictionaries(st.sampled_from(ANNOTATIONS), WORDS),
    drop=st.lists(WORDS),
    **dict.fromkeys(("name", "type", "procMount"), WORDS | st.just("a")),
)


@PROPERTY
@given(TEMPLATES, st.integers(0, 40))
def test_any_template_is_evaluated(template: Any, minor: int) -> None:
    read = decode(json.dumps(template).encode())
    assert read == convert(template)
    for level in Level:
        for result in evaluate(level, Version(minor), read):
            assert result.reason
            assert result.paths
            assert all(path.startswith(("spec.", "metadata.annotations[")) for path in result.paths)


@PROPERTY
@given(json_values())
def test_any_json_is_decoded_or_rejected(value: Any) -> None:
    try:
        template = decode(json.dumps(value).encode())
    except ShapeError:
        return
    evaluate(Level.RESTRICTED, LATEST, template)


@pytest.mark.parametrize(
    ("template", "path", "message"),
    [
        ([], "", "must be a mapping, not a list"),
        (
            {"spec": {"containers": [{}, {"securityContext": {"privileged": "yes"}}]}},
            "spec.containers[1].securityContext.privileged",
            "must be true or false, not a string",
        ),
        ({"spec": {"securityContext": {"runAsUser": 0.5}}}, "spec.securityContext.runAsUser", None),
        ({"spec": {"volumes": {}}}, "spec.volumes", "must be a list, not a mapping"),
    ],
)
def test_wrong_type_is_reported_with_its_path(template: Any, path: str, message: str | None) -> None:
    for read in (convert, lambda value: decode(json.dumps(value).encode())):
        with pytest.raises(ShapeError) as caught:
            read(template)
        assert caught.value.path == path
        assert message in (None, caught.value.message)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b'{"metadata": "\xff"}', b'{"spec": {"os": {"name": "\\ud800"}}}']
)
def test_invalid_json_is_rejected(data: bytes) -> None:
    with pytest.raises(ShapeError):
        decode(data)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("unconfined", '"unconfined"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("ä 漢\U0001f600", '"ä 漢\U0001f600"'),
        ("\u00a0\u200b\ufeff\U000e0001", '"\\u00a0\\u200b\\ufeff\\U000e0001"'),
    ],
)
def test_text_is_quoted_as_in_go(text: str, quoted: str) -> None:
    """The expected texts are those that Go's `fmt.Printf("%q", text)` prints."""
    assert go_quoted(text) == quoted
