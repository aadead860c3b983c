"""The command `policy test`."""

import sys
from typing import NoReturn

import click

from webhook.cli.options import REFUSED, output_option
from webhook.cli.terminal import UNUSABLE, complain


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("-q", "--quiet", is_flag=True, help="Show only failed tests.")
@output_option(("text", "json", "junit", "github"), "The output format: for people, programs or CI systems.")
def test(*, paths: tuple[str, ...], quiet: bool, output: str) -> NoReturn:
    """Test whether jobs get the expected verdicts.

    A PATH is a file of tests, a folder with files of tests, or - for standard input. The default is the current folder.

    A file of tests is a document of kind MPIJobPolicyTest. The document names policies, a job, the objects of the
    cluster and the user. Each test has changes to the job, and the expected findings. A test fails if a finding is
    missing or not expected.

    Paths in a file are relative to the folder of the file. Only the cluster objects listed in the test exist.

    \b
    Examples:
      mpijob-webhook policy test
      mpijob-webhook policy test manifests/policies
      mpijob-webhook policy test tests/tiers.yaml -o junit > junit.xml
      mpijob-webhook policy test -o github

    \b
    Exit code:
      0  every test passed
      1  at least one test failed
      2  unusable input: a file, a policy or a job in it is broken, or there is no test
    """
    from webhook.cli.policy import suite, suite_run
    from webhook.cli.policy.documents import TEST_KIND

    loaded = suite.load(paths or ["."])
    report = suite_run.SuiteReport(
        [outcome for tests in loaded.suites for outcome in suite_run.run(tests)], loaded.errors
    )
    if report.outcomes or report.errors:
        for line in report.in_form(output, quiet=quiet):
            click.echo(line)
    else:
        complain(f"no test in {', '.join(paths) or 'this folder'}: none is a document of kind {TEST_KIND}")
    complain(*report.errors)
    sys.exit(UNUSABLE if report.unusable else REFUSED if report.failed else 0)
