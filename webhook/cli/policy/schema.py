"""The command `policy schema`."""

import json

import click


@click.command()
@click.option("--tests", is_flag=True, help="Write the schema of test files instead.")
def schema(*, tests: bool) -> None:
    """Write the JSON Schema of policy documents, for editors.

    \b
    Examples:
      mpijob-webhook policy schema > mpijobpolicy.schema.json
      mpijob-webhook policy schema --tests > mpijobpolicytest.schema.json
    """
    from webhook.cli.policy.document_schema import json_schema, schema_of_tests

    click.echo(json.dumps(schema_of_tests() if tests else json_schema(), indent=2))
