"""The manifests for kustomize: the overlays and components of an installation."""

from pathlib import Path
from typing import Any, Final

from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

# The overlay for each value of `certificates`.
CERTIFICATES: Final = {"selfManaged": "default", "certManager": "cert-manager", "openshift": "openshift"}


def kustomization(folder: str) -> Any:
    (found,) = load_all((MANIFESTS / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    return found


def components_of(overlay: str) -> list[str]:
    """The components of an overlay, and the component with its hooks."""
    found = [Path(path).name for path in kustomization(f"overlays/{overlay}").get("components", ())]
    return found + [name for name in [f"hooks-{overlay}"] if (MANIFESTS / "components" / name).is_dir()]


def components() -> list[str]:
    taken = {name for overlay in CERTIFICATES.values() for name in components_of(overlay)}
    return sorted(path.name for path in (MANIFESTS / "components").iterdir() if path.name not in taken)


def camel(name: str) -> str:
    """The name of a component as a value: auditReports for `audit-reports`."""
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)
