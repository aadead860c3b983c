"""The annotations of a job that the service reads or writes. The pods do not get these annotations."""

from typing import Final

from webhook.api.limits import MAX_SHOWN_KEY_BYTES

DEBUG_MODE: Final = "training.openshift.io/debug-mode"
"""`"true"`: keep the pods after the job's end."""

TIMEOUT: Final = "training.openshift.io/timeout"
"""The maximum run time, in the format of `webhook.api.duration`."""

TIMEOUT_ACTION: Final = "training.openshift.io/timeout-action"
"""The action after the maximum run time: `terminate` (default) or `notify-only`."""

GPU_PRODUCT: Final = "training.openshift.io/gpu-product"
"""The GPU products that the job accepts: values of the nodes' product label, separated by commas."""

WORKER_READINESS: Final = "training.openshift.io/worker-readiness"
"""`"true"` or sshd's port: the launcher waits until the workers' sshd answers. `"false"`: the launcher does not wait.
"""

SKIP: Final = "training.openshift.io/skip"
"""Ids of injections that the job skips, separated by commas."""

INJECTED: Final = "training.openshift.io/injected"
"""Ids of the injections that changed the job at its creation, separated by commas. The service never reads this value.
"""

TERMINATE: Final = "terminate"
NOTIFY_ONLY: Final = "notify-only"

QUEUE: Final = "training.openshift.io/queue"
"""The LocalQueue of Kueue for the job. An empty value means no queue."""

NETWORKS: Final = "training.openshift.io/networks"
"""Additional networks for the pods that run ranks: `namespace/name@interface`, separated by commas."""

RDMA: Final = "training.openshift.io/rdma"
"""`"true"`: the pods that run ranks get RDMA devices; `"false"`: they do not."""

NETWORK_POLICY: Final = "training.openshift.io/network-policy"
"""The traffic that the job's pods accept and send: `none`, `default`, `restricted` or `isolated`."""

MIGRATED_FROM: Final = "training.openshift.io/migrated-from"
"""The kind of job that was converted to this job, such as `sagemaker`. Only people and statistics read this value."""

CREATED_BY: Final = "training.openshift.io/created-by"
"""The user who created the job. Only the webhook may write this annotation."""

OF_USERS: Final = (
    CREATED_BY, DEBUG_MODE, GPU_PRODUCT, INJECTED, MIGRATED_FROM, NETWORK_POLICY, NETWORKS, QUEUE, RDMA, SKIP, TIMEOUT,
    TIMEOUT_ACTION, WORKER_READINESS,
)  # fmt: skip


def mention(key: str, value: str) -> str:
    """The key and the start of the value, for a message on one line."""
    return f"{key} {quoted(value)}"


def quoted(value: str) -> str:
    """The start of a user's text, in quotes, without control characters.

    The API server drops a warning that contains control characters (`NewWarningHeader` in apimachinery
    `pkg/util/net/http.go`).
    """
    raw = value[: MAX_SHOWN_KEY_BYTES + 1].encode(errors="replace")
    start = value if len(raw) <= MAX_SHOWN_KEY_BYTES else raw[: MAX_SHOWN_KEY_BYTES - 3].decode(errors="ignore") + "..."
    return f'"{"".join(char if char.isprintable() else "?" for char in start)}"'
