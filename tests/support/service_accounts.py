"""ServiceAccounts as in an API server."""

from typing import Any


def service_account(name: str, *, namespace: str = "team-a", token: bool | None = None) -> dict[str, Any]:
    """A ServiceAccount. `token` says whether its pods get a token; with None, the field is absent."""
    field = {} if token is None else {"automountServiceAccountToken": token}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}, **field}
