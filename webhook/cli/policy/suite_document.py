"""The model of policy tests: documents of kind MPIJobPolicyTest."""

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
    """An expected finding, which may match several findings."""

    rule: str = Field(min_length=1, description="The id of the rule, or of the injection that warns.")
    action: Literal["deny", "warn", "audit", "exempt", "fault"] = Field(
        "deny", description="The action, or fault for a custom rule that cannot be evaluated for this job."
    )
    field: str = Field("", description="The full path of the field; absent for any field.")
    message: str = Field("", description="Part of the problem or of the fix; absent for any text.")


class NamespaceFacts(Settings):
    """The namespace in which a job is created."""

    name: str = Field("", description="The name; absent for the namespace of the job, or default.")
    labels: dict[str, str] = Field({}, description="The labels, by which policies select the namespace.")
    annotations: dict[str, str] = Field({}, description="The annotations.")


class UserFacts(Settings):
    """The user who creates a job."""

    name: str = Field(min_length=1, description="The user name that the API server sees.")
    groups: tuple[str, ...] = Field((), description="Names of groups.")
    may_exempt: tuple[str, ...] = Field((), description="Ids of rules from which the user may exempt jobs (RBAC).")


class Around(Settings):
    """Settings for all tests of a file, or for one test."""

    job: FileOrObject | None = Field(None, description="The MPIJob, or the name of a file with one MPIJob.")
    cluster: tuple[FileOrObject, ...] = Field(
        (),
        description="The objects of the cluster, or names of files with objects. The objects of a test are added to"
        " those of the file. If a job of the same name is among them, the test is about an update of that job.",
    )
    namespace: NamespaceFacts | None = Field(None, description="The namespace of the job; by default without labels.")
    user: UserFacts | None = Field(None, description="The user who creates the job; absent for an unknown user.")
    date: datetime.date | None = Field(None, description="The day (UTC), for exemptions that expire; absent for today.")


class Case(Around):
    """A test."""

    name: str = Field(min_length=1, description="What the test shows.")
    change: Fields = Field({}, description="Changed fields of the job, by path; null removes a field.")
    expect: tuple[Expected, ...] = Field((), description="All expected findings; absent if none is expected.")
    stored: Fields = Field({}, description="Expected fields after injections, by path; null for a missing field.")


class SuiteDocument(Around):
    """A file of tests."""

    api_version: Literal["policy.training.openshift.io/v1"] = Field(description="Always this.")
    kind: Literal["MPIJobPolicyTest"] = Field(description="Always this.")
    policies: tuple[str, ...] = Field(min_length=1, description="Names of policy files, like for `kubectl apply -f`.")
    rules: tuple[str, ...] | None = Field(
        None,
        description="Rules and injections whose warnings and audits are compared; absent for all."
        " Rejections are always compared.",
    )
    tests: tuple[Case, ...] = Field(min_length=1, description="The tests. They do not affect each other.")
