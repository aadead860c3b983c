"""ServiceAccounts, as an API server has them."""

from typing import Any


def service_account(name: str, *, namespace: str = "team-a", token: bool | None = None) -> dict[str, Any]:
    """An account that states whether its pods get a token; None leaves the field out."""
    said = {} if token is None else {"automountServiceAccountToken": token}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}, **said}
