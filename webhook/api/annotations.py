"""The annotations on a job by which its user controls the service. They do not reach the pods."""

from typing import Final

from webhook.api.limits import MAX_SHOWN_KEY_BYTES

DEBUG_MODE: Final = "training.openshift.io/debug-mode"
"""`"true"`: keep the pods after the end for inspection."""

TIMEOUT: Final = "training.openshift.io/timeout"
"""The maximum run time, as `webhook.api.duration` reads it."""

TIMEOUT_ACTION: Final = "training.openshift.io/timeout-action"
"""The action at that time: `terminate` (the default) or `notify-only`."""

GPU_PRODUCT: Final = "training.openshift.io/gpu-product"
"""Acceptable GPUs: values of the nodes' product label, separated by commas."""

WORKER_READINESS: Final = "training.openshift.io/worker-readiness"
"""`"true"` or the port of sshd: the launcher starts when the workers' sshd answers; `"false"`: it does not wait."""

SKIP: Final = "training.openshift.io/skip"
"""Ids of injections that the job skips, separated by commas."""

INJECTED: Final = "training.openshift.io/injected"
"""Ids of the injections that changed the job at its creation, separated by commas: for people."""

TERMINATE: Final = "terminate"
NOTIFY_ONLY: Final = "notify-only"

QUEUE: Final = "training.openshift.io/queue"
"""The LocalQueue of Kueue for the job; empty for none."""

NETWORKS: Final = "training.openshift.io/networks"
"""Further networks for the pods that compute, as `namespace/name@interface` separated by commas; empty for none."""

RDMA: Final = "training.openshift.io/rdma"
"""`"true"`: the pods that compute get RDMA devices; `"false"`: they do not."""

NETWORK_POLICY: Final = "training.openshift.io/network-policy"
"""The traffic that the job's pods accept and send: `none`, `default`, `restricted` or `isolated`."""

MIGRATED_FROM: Final = "training.openshift.io/migrated-from"
"""The kind of job it was converted from, such as `sagemaker`: for people and for statistics."""

CREATED_BY: Final = "training.openshift.io/created-by"
"""The user who created the job: only admission writes it."""

OF_USERS: Final = (
    CREATED_BY, DEBUG_MODE, GPU_PRODUCT, INJECTED, MIGRATED_FROM, NETWORK_POLICY, NETWORKS, QUEUE, RDMA, SKIP, TIMEOUT,
    TIMEOUT_ACTION, WORKER_READINESS,
)  # fmt: skip


def mention(key: str, value: str) -> str:
    """The annotation for use in a message of one line: the key, and enough of the value to recognise it."""
    return f"{key} {quoted(value)}"


def quoted(value: str) -> str:
    """Enough of a user's text to recognise it, in quotes.

    Control characters are replaced: the API server drops a warning that has one (apimachinery `pkg/util/net/http.go`,
    `NewWarningHeader`).
    """
    raw = value[: MAX_SHOWN_KEY_BYTES + 1].encode(errors="replace")
    start = value if len(raw) <= MAX_SHOWN_KEY_BYTES else raw[: MAX_SHOWN_KEY_BYTES - 3].decode(errors="ignore") + "..."
    return f'"{"".join(char if char.isprintable() else "?" for char in start)}"'
