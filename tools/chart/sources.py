"""The manifests for kustomize: the overlays and components of an installation."""

from pathlib import Path
from typing import Any, Final

from tests.support.paths import MANIFESTS
from webhook.api.yaml import load_all

CERTIFICATES: Final = {"selfManaged": "default", "certManager": "cert-manager", "openshift": "openshift"}


def kustomization(folder: str) -> Any:
    (document,) = load_all((MANIFESTS / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    return document


def components_of(overlay: str) -> list[str]:
    """The components of an overlay, including `hooks-OVERLAY` if this component exists."""
    names = [Path(path).name for path in kustomization(f"overlays/{overlay}").get("components", ())]
    hooks = f"hooks-{overlay}"
    return [*names, hooks] if (MANIFESTS / "components" / hooks).is_dir() else names


def components() -> list[str]:
    """The optional components: the components that no overlay includes."""
    taken = {name for overlay in CERTIFICATES.values() for name in components_of(overlay)}
    return sorted(path.name for path in (MANIFESTS / "components").iterdir() if path.name not in taken)


def camel(name: str) -> str:
    """The name of the chart's value for a component, such as `keyRemoval` for `key-removal`."""
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)
