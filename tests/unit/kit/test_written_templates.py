"""Templates are found once per review, and never taken from another document."""

import pytest
from msgspec import structs

from webhook.api import written
from webhook.kit.context import Context
from webhook.kit.written_templates import written_templates

DOCUMENT = b'{"spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {}}}}}}'


def test_they_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = Context(document=DOCUMENT)
    assert written_templates(ctx) == {"Worker": b'{"spec": {}}'}
    monkeypatch.setattr(written, "templates", None)
    assert written_templates(ctx) == {"Worker": b'{"spec": {}}'}


def test_another_document_has_its_own() -> None:
    ctx = Context(document=DOCUMENT)
    written_templates(ctx)
    assert written_templates(structs.replace(ctx, document=b'{"spec": {}}')) == {}
