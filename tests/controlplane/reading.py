"""The output of `kubectl get -o json` without a process for each call, because tests poll ten times a second."""

import argparse
import http.client
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.controlplane.credentials import client_of
from tests.controlplane.process import ControlPlaneError

# https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True)
class Kind:
    base: str
    plural: str
    namespaced: bool

    def path(self, name: str, namespace: str | None) -> str:
        """The path of an object, or of all objects if `name` is empty. Without `namespace`, for all namespaces."""
        within = ["namespaces", namespace] if self.namespaced and namespace else []
        return "/".join([self.base, *within, self.plural, *([quote(name)] if name else [])])


class Reader:
    """Reads objects with the permissions of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self._server, self._context = client_of(kubeconfig)
        self._kinds: dict[str, Kind] = {}

    def get(self, *args: str | Path) -> Any:
        """The parsed output of `kubectl get ARGS -o json`. Raises ControlPlaneError for an error of the API server."""
        with _PARSING:
            query = _ARGUMENTS.parse_intermixed_args([str(arg) for arg in args])
        kind_name, _, name = query.kind.partition("/")
        kind = self._kind(kind_name)
        selectors = {"labelSelector": query.selector, "fieldSelector": query.field_selector}
        path = kind.path(name or query.name, None if query.all_namespaces else query.namespace)
        reply = self._read(f"{path}?{urlencode({key: value for key, value in selectors.items() if value})}")
        for item in reply.get("items", ()):  # kubectl adds the kind to each item
            item.setdefault("kind", reply["kind"].removesuffix("List"))
            item.setdefault("apiVersion", reply["apiVersion"])
        for item in reply.get("items", [reply]):
            item["metadata"].pop("managedFields", None)
        return reply

    def _kind(self, name: str) -> Kind:
        if name not in self._kinds:
            self._discover()
        if name not in self._kinds:
            raise ControlPlaneError(f"the API server has no {name}")
        return self._kinds[name]

    def _discover(self) -> None:
        """Store each kind under all names that kubectl accepts. If kinds share a name, the first kind gets it."""
        for root in ("/api", "/apis"):
            for group in self._read(root, DISCOVERY)["items"]:
                for version in group["versions"]:
                    group_name = group["metadata"].get("name", "")
                    base = "/".join(filter(None, [root, group_name, version["version"]]))
                    for resource in version.get("resources", ()):
                        kind = Kind(base, resource["resource"], resource["scope"] == "Namespaced")
                        singular = resource.get("singularResource") or resource["responseKind"]["kind"].lower()
                        for name in (resource["resource"], singular, *resource.get("shortNames", ())):
                            for full in (name, f"{name}.{group_name}", f"{name}.{version['version']}.{group_name}"):
                                self._kinds.setdefault(full, kind)

    def _read(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        server = urlsplit(self._server)
        connection = http.client.HTTPSConnection(str(server.hostname), server.port, context=self._context, timeout=60)
        try:
            connection.request("GET", path, headers={"Accept": accept})
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ControlPlaneError(f"GET {path}: {error!r}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise ControlPlaneError(f"GET {path}: {response.status} {text.decode(errors='replace')}")
        reply: dict[str, Any] = json.loads(text)
        return reply


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="get", allow_abbrev=False, exit_on_error=False)
    parser.add_argument("kind")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("-l", "--selector", default="")
    parser.add_argument("--field-selector", default="")
    return parser


# The parser is not thread-safe.
_PARSING = threading.Lock()
_ARGUMENTS = _arguments()
