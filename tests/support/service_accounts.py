"""ServiceAccounts, as an API server has them."""

from typing import Any


def service_account(name: str, *, namespace: str = "team-a", token: bool | None = None) -> dict[str, Any]:
    """One that says whether its pods get a token; None for one that does not say."""
    said = {} if token is None else {"automountServiceAccountToken": token}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}, **said}
