"""The document of a file of tests: kind MPIJobPolicyTest."""

import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from webhook.cli.policy import job_fields
from webhook.kit.settings import Settings


def _file_or_object(value: Any) -> Any:
    if not (isinstance(value, str) and value) and not isinstance(value, dict):
        raise ValueError("must be the name of a file, or the object itself")
    return value


def _paths(value: Any) -> Any:
    for path in value if isinstance(value, dict) else ():
        try:
            job_fields.parse(path)
        except job_fields.FieldError as error:
            raise ValueError(f"{path} {error}") from None
    return value


FileOrObject = Annotated[
    Any, BeforeValidator(_file_or_object), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})
]
Fields = Annotated[dict[str, Any], BeforeValidator(_paths)]


class Expected(Settings):
    """A finding, or several similar ones."""

    rule: str = Field(min_length=1, description="The rule, or the injection that reports what it could not do.")
    action: Literal["deny", "warn", "audit", "exempt", "fault"] = Field(
        "deny", description="The action; fault for a custom rule that cannot be evaluated for this job."
    )
    field: str = Field("", description="The whole path of the field; absent for any.")
    message: str = Field("", description="Part of the problem or of the fix; absent for any.")


class NamespaceFacts(Settings):
    """The namespace in which a job is created."""

    name: str = Field("", description="Absent for the namespace of the job, or default.")
    labels: dict[str, str] = Field({}, description="Its labels, by which policies select it.")
    annotations: dict[str, str] = Field({}, description="Its annotations.")


class UserFacts(Settings):
    """The user who creates a job."""

    name: str = Field(min_length=1, description="The user name that the API server sees.")
    groups: tuple[str, ...] = Field((), description="Names of groups.")
    may_exempt: tuple[str, ...] = Field((), description="Rules from which RBAC lets the user exempt jobs.")


class Around(Settings):
    """Settings for all tests of a file, or for one."""

    job: FileOrObject | None = Field(None, description="The MPIJob, or the name of a file that has one.")
    cluster: tuple[FileOrObject, ...] = Field(
        (),
        description="The cluster: objects, or names of files with objects. A test adds its own to those of the file."
        " A job of the same name makes the test one of a change to it.",
    )
    namespace: NamespaceFacts | None = Field(None, description="Where the job is created; by default without labels.")
    user: UserFacts | None = Field(None, description="The user who creates it; absent for an unknown user.")
    date: datetime.date | None = Field(None, description="The day (UTC) for the policies; absent for today.")


class Case(Around):
    """One test."""

    name: str = Field(min_length=1, description="What it shows.")
    change: Fields = Field({}, description="Changed fields of the job, by their paths; null removes one.")
    expect: tuple[Expected, ...] = Field((), description="All expected findings; absent for none.")
    stored: Fields = Field({}, description="Fields of the job after injections, by their paths; null for none.")


class SuiteDocument(Around):
    """A file of tests."""

    api_version: Literal["policy.training.openshift.io/v1"] = Field(description="Always this.")
    kind: Literal["MPIJobPolicyTest"] = Field(description="Always this.")
    policies: tuple[str, ...] = Field(
        min_length=1, description="Names of files, as `kubectl apply -f` would take them."
    )
    rules: tuple[str, ...] | None = Field(
        None,
        description="Rules and injections whose warnings and audits are compared; absent: all. Rejections always are.",
    )
    tests: tuple[Case, ...] = Field(min_length=1, description="The tests; they do not affect each other.")
