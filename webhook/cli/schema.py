"""The command `schema`: JSON Schemas of jobs for editors."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import json
from pathlib import Path

import click

from webhook.cli.options import POLICY


@click.group()
def schema() -> None:
    """Write the JSON Schemas of documents, for editors.

    `mpijob-webhook policy schema` writes that of policies.

    \b
    Examples:
      mpijob-webhook schema job > mpijob.schema.json

    \b
    Exit code:
      0  written
      2  the policy cannot be used
    """


@schema.command()
@POLICY
def job(*, policy: Path | None) -> None:
    """Write the JSON Schema of MPIJobs.

    It has the fields of the CRD, and the limits of the policy: number of workers, length of names, choices.
    `mpijob-webhook check` also checks what depends on several fields or on the cluster.

    An editor with a YAML language server takes it from the first line of a file:
    # yaml-language-server: $schema=mpijob.schema.json

    \b
    Examples:
      mpijob-webhook schema job > mpijob.schema.json
      mpijob-webhook schema job --policy policy.yaml > mpijob.schema.json

    \b
    Exit code:
      0  written
      2  the policy cannot be used
    """
    from webhook.cli import job_check, job_document_schema
    from webhook.cli.job_world import JobWorld

    world = JobWorld(instead=job_check.load_policies(policy) if policy else None)
    click.echo(json.dumps(job_document_schema.json_schema(world.policy(world.namespace)), indent=2))
