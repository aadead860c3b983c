"""The command `schema job`."""

import json
from pathlib import Path

import click

from webhook.cli.options import POLICY


@click.group()
def schema() -> None:
    """Write the JSON Schemas of documents, for editors.

    For the JSON Schema of policies use `mpijob-webhook policy schema`.

    \b
    Examples:
      mpijob-webhook schema job > mpijob.schema.json

    \b
    Exit code:
      0  the schema was written
      2  the policy cannot be used
    """


@schema.command()
@POLICY
def job(*, policy: Path | None) -> None:
    """Write the JSON Schema of MPIJobs.

    The schema has the fields of the CRD and limits of the policy, such as the number of workers. `mpijob-webhook check`
    also evaluates rules that depend on several fields or on the cluster.

    For editors with a YAML language server, the first line of a job file names the schema:
    # yaml-language-server: $schema=mpijob.schema.json

    \b
    Examples:
      mpijob-webhook schema job > mpijob.schema.json
      mpijob-webhook schema job --policy policy.yaml > mpijob.schema.json

    \b
    Exit code:
      0  the schema was written
      2  the policy cannot be used
    """
    from webhook.cli import job_check, job_document_schema
    from webhook.cli.job_world import JobWorld

    world = JobWorld(instead=job_check.load_policies(policy) if policy else None)
    click.echo(json.dumps(job_document_schema.json_schema(world.policy(world.namespace)), indent=2))
