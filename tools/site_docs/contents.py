"""The navigation of the site: the pages for each group of readers."""

from typing import Final

USERS: Final = (
    "first-job", "rejections", "why", "injections", "queues", "networks", "time-limits", "topology", "pod-security",
    "openshift", "convert", "command", "ci", "gitops", "clients",
)  # fmt: skip
ADMINISTRATORS: Final = (
    "install", "roll-out", "write-policies", "policies", "exemptions", "custom-rules", "plugins", "quotas", "rdma",
    "secure", "operations", "dashboard", "runbook", "disconnected", "trainer", "older-versions", "SECURITY",
)  # fmt: skip
CONTRIBUTORS: Final = (
    "architecture", "development", "reference/requirements", "benchmarks", "CHANGELOG", "README",
)  # fmt: skip
REFERENCE: Final = (
    "messages", "reference/rules", "reference/injections", "reference/policy", "reference/cli", "reference/metrics",
    "reference/panels", "reference/pod-security", "reference/limits", "reference/real-jobs", "reference/licences",
)  # fmt: skip
