"""The messages of Pod Security admission about a pod, from the results of its checks."""

from collections.abc import Sequence

from webhook.predict.pod_security.checks import Result
from webhook.predict.pod_security.levels import LevelVersion


def details(results: Sequence[Result]) -> str:
    """The long form: `host namespaces (hostNetwork=true), privileged (container "a" must not set ...)`."""
    return ", ".join(f"{result.reason} ({result.detail})" if result.detail else result.reason for result in results)


def denial(policy: LevelVersion, results: Sequence[Result]) -> str:
    """Why the pod is forbidden; admission puts `pods "name" is forbidden: ` before it."""
    return f'violates PodSecurity "{policy}": {details(results)}'


def warning(policy: LevelVersion, results: Sequence[Result]) -> str:
    """The warning, and the audit annotation `audit-violations`."""
    return f"would {denial(policy, results).replace('violates', 'violate', 1)}"
