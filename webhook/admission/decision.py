"""The decision about one job, and the reply made from it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from webhook.admission import messages
from webhook.admission.limits import MAX_FINDINGS_PER_DECISION, MAX_LISTED_FINDINGS
from webhook.admission.messages import Finding
from webhook.api import mpijob, review
from webhook.api.text import visible
from webhook.cluster.resources.reservations import Reservation
from webhook.injections import REGISTRY, Caution, Hint, Note
from webhook.kit.importance import Importance
from webhook.kit.settings import Action
from webhook.policy.document import InjectionWarnings

QUOTA_RULE = "resource-quota"


class Decision(msgspec.Struct):
    """The reply, the log, the metrics and the output of commands are made from a decision."""

    denied: list[Finding] = msgspec.field(default_factory=list)
    """Findings that reject the job."""
    warned: list[Finding] = msgspec.field(default_factory=list)
    """Findings that warn the user, the worst first."""
    audited: list[Finding] = msgspec.field(default_factory=list)
    """Findings for the audit log only."""
    rule_faults: dict[str, str] = msgspec.field(default_factory=dict)
    """Errors of custom rules, by rule id. The policy is at fault, not the job."""
    exempted: list[tuple[Finding, str]] = msgspec.field(default_factory=list)
    """Exempted findings with their reasons."""
    requested: list[str] = msgspec.field(default_factory=list)
    """The job requests an exemption from these rules. The requester may lack the permission to exempt jobs."""
    told: dict[str, list[str]] = msgspec.field(default_factory=dict)
    news: list[str] = msgspec.field(default_factory=list)
    """Injections that changed the job in this review, without the quiet injections."""
    injection_warnings: InjectionWarnings = "each"
    skipped: str = ""
    """The reason why the job was not checked; empty if it was checked."""
    name: str = ""
    """The name of the job in messages."""
    group: str = mpijob.GROUP
    kind: str = "MPIJob"
    patch: list[dict[str, object]] = msgspec.field(default_factory=list)
    authors: list[str] = msgspec.field(default_factory=list)
    """The injection of each operation in `patch`. A last operation that lists the injections has no author."""
    document: dict[str, Any] | None = None
    """The patched object without its managedFields."""
    reservation: Reservation | None = None
    """The job's use of the namespace's quotas; None if no quota applies."""
    refused_gpus: dict[str, int] = msgspec.field(default_factory=dict)
    """The accelerators that a rejected new job requests."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Further entries for the audit log."""
    policy: str = ""
    """Names and versions of the applied policies; empty if only the built-in defaults apply."""

    def add(self, finding: Finding, action: Action) -> None:
        {Action.DENY: self.denied, Action.WARN: self.warned}.get(action, self.audited).append(finding)

    @property
    def findings(self) -> Iterator[tuple[Action, Finding]]:
        """Actions with findings, the worst action first. Findings that another finding causes are left out."""
        by_action = ((Action.DENY, self.denied), (Action.WARN, self.warned), (Action.AUDIT, self.audited))
        return ((action, finding) for action, findings in by_action for finding in findings if not finding.cause)

    def put_worst_first(self) -> None:
        """Sort the findings, and cut each list to `MAX_FINDINGS_PER_DECISION`. Call it after all findings were added.

        `Violation.follows` is the path of another violation. The finding at that path is the cause if it has no
        `follows` and if its action is the same or stronger. Findings with a cause are listed last.
        """
        self.warned.sort(key=lambda finding: finding.importance)
        for listed in (self.denied, self.warned, self.audited, self.exempted):
            del listed[MAX_FINDINGS_PER_DECISION:]
        causes: dict[str, str] = {}
        for findings in (self.denied, self.warned, self.audited):
            for finding in reversed(findings):
                if not finding.violation.follows:
                    causes[finding.violation.path] = finding.rule
            for index, finding in enumerate(findings):
                if cause := causes.get(finding.violation.follows):
                    findings[index] = replace(finding, cause=cause)
            findings.sort(key=lambda finding: bool(finding.cause))

    @property
    def allowed(self) -> bool:
        return not self.denied

    @property
    def depends_on_quota(self) -> bool:
        """Whether a quota applies and no other rule rejects the job."""
        return self.reservation is not None and all(finding.rule == QUOTA_RULE for finding in self.denied)

    @property
    def message(self) -> str:
        """The text of the rejection; empty for an admitted job."""
        return messages.denial(self.name, self.denied, self.kind) if self.denied else ""

    @property
    def warnings(self) -> list[str]:
        """The warnings about findings, then about failed injections, then about injections."""
        if not (self.warned or self.told or self.news):
            return []
        texts = [finding.warning for finding in self.warned]
        if self.told or self.news:
            texts += [*map(messages.shorten, self.cautions), *self._injected()]
        return messages.warnings(texts)

    @property
    def cautions(self) -> list[str]:
        """Warnings about failed injections, the worst first. They do not depend on `injection_warnings`."""
        injected = {*self.authors}
        cautions = [
            (author, note)
            for author, notes in self.told.items()
            for note in notes
            if isinstance(note, Caution) or (author not in injected and not isinstance(note, Hint))
        ]
        return [
            visible(f"{author}: {note}")
            for author, note in sorted(cautions, key=lambda caution: _importance(caution[0]))
        ]

    @property
    def notes(self) -> list[str]:
        """All notes of injections. They do not depend on `injection_warnings`."""
        return [visible(f"{author}: {note}") for author, notes in self.told.items() for note in notes]

    @property
    def hints(self) -> list[str]:
        """Notes about fields that the injections did not change."""
        return [note for notes in self.told.values() for note in notes if isinstance(note, Hint)]

    def _injected(self) -> list[str]:
        if self.injection_warnings == "one-line":
            briefs = {author: self._brief(author) for author in self.news}
            return [messages.injected(briefs, self.hints)] if briefs else []
        return [*map(messages.shorten, self.notes)] if self.injection_warnings == "each" else []

    def _brief(self, author: str) -> str:
        for note in self.told.get(author, ()):
            if isinstance(note, Note):
                return note.brief
        return ""

    def response(self, uid: str) -> review.AdmissionResponse:
        return review.AdmissionResponse(
            uid=uid,
            allowed=self.allowed,
            status=self._status() if self.denied else None,
            patch=review.encode_patch(self.patch) if self.patch else None,
            patch_type="JSONPatch" if self.patch else None,
            warnings=self.warnings,
            audit_annotations=self._audit(),
        )

    def _status(self) -> review.ResponseStatus:
        causes = [
            review.StatusCause(reason=str(f.violation.reason), message=f.sentence, field=f.violation.path)
            for f in self.denied[:MAX_LISTED_FINDINGS]
        ]
        causes[0].message = messages.first_of(causes[0].message, len(self.denied))
        details = review.StatusDetails(name=visible(self.name), group=self.group, kind=self.kind, causes=causes)
        return review.ResponseStatus(message=self.message, reason="Invalid", code=422, details=details)

    def _audit(self) -> dict[str, str]:
        injected = dict.fromkeys(self.authors)
        values = {
            "denied": _ids(self.denied),
            "warned": _ids(self.warned),
            "audited": _ids(self.audited),
            "audit-violations": "; ".join(map(_audit_line, self.audited[:MAX_LISTED_FINDINGS])),
            "exempted": "; ".join({f"{finding.rule}: {reason}": None for finding, reason in self.exempted}),
            "injected": ",".join(injected),
            **{f"injected.{author}": "; ".join(notes) for author, notes in self.told.items() if author in injected},
            "rule-faults": "; ".join(f"{rule}: {fault}" for rule, fault in self.rule_faults.items()),
            "skipped": self.skipped,
            "policy": self.policy,
            **self.annotations,
        }
        return {key: visible(value) for key, value in values.items() if value}


def _importance(injection_id: str) -> Importance:
    entry = REGISTRY.get(injection_id)
    return entry.importance if entry is not None else Importance.HARMS


def _audit_line(finding: Finding) -> str:
    return f"{finding.violation.path}: {finding.violation.message} {finding.label}"


def _ids(findings: list[Finding]) -> str:
    return ",".join(dict.fromkeys([finding.rule for finding in findings])) if findings else ""
