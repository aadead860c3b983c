"""The messages of Pod Security admission, built from the results of the checks."""

from collections.abc import Sequence

from webhook.predict.pod_security.checks import Result
from webhook.predict.pod_security.levels import LevelVersion


def details(results: Sequence[Result]) -> str:
    """The long form: `host namespaces (hostNetwork=true), privileged (container "a" must not set ...)`."""
    return ", ".join(f"{result.reason} ({result.detail})" if result.detail else result.reason for result in results)


def denial(policy: LevelVersion, results: Sequence[Result]) -> str:
    """The message without the prefix `pods "name" is forbidden: `, which admission adds."""
    return f'violates PodSecurity "{policy}": {details(results)}'


def warning(policy: LevelVersion, results: Sequence[Result]) -> str:
    """The text of the warning and of the audit annotation `audit-violations`."""
    return f"would {denial(policy, results).replace('violates', 'violate', 1)}"
