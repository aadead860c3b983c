"""The output of `kubectl get -o json` without a process for each call, because tests poll ten times a second."""

import argparse
import base64
import http.client
import json
import ssl
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import yaml

from tests.controlplane.process import ControlPlaneError

# https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True)
class Kind:
    """The path of the objects of a kind."""

    base: str
    plural: str
    namespaced: bool

    def path(self, name: str, namespace: str | None) -> str:
        """The path of an object. Without a name, of all objects; without a namespace, in all namespaces."""
        within = ["namespaces", namespace] if self.namespaced and namespace else []
        return "/".join([self.base, *within, self.plural, *([quote(name)] if name else [])])


class Reader:
    """Reads objects with the permissions of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._kinds: dict[str, Kind] = {}

    def get(self, *args: str | Path) -> Any:
        """The parsed output of `kubectl get ARGS -o json`. Raises ControlPlaneError for an error of the API server."""
        with _PARSING:
            wanted = _ARGUMENTS.parse_intermixed_args([str(arg) for arg in args])
        kind_name, _, name = wanted.kind.partition("/")
        kind = self._kind(kind_name)
        query = {"labelSelector": wanted.selector, "fieldSelector": wanted.field_selector}
        path = kind.path(name or wanted.name, None if wanted.all_namespaces else wanted.namespace)
        found = self._read(f"{path}?{urlencode({key: value for key, value in query.items() if value})}")
        for item in found.get("items", ()):  # kubectl adds the kind to each item
            item.setdefault("kind", found["kind"].removesuffix("List"))
            item.setdefault("apiVersion", found["apiVersion"])
        for item in found.get("items", [found]):
            item["metadata"].pop("managedFields", None)
        return found

    def _kind(self, name: str) -> Kind:
        if name not in self._kinds:
            self._discover()
        if name not in self._kinds:
            raise ControlPlaneError(f"the API server has no {name}")
        return self._kinds[name]

    def _discover(self) -> None:
        """The kinds by all names that kubectl accepts. The first version and group wins."""
        for root in ("/api", "/apis"):
            for group in self._read(root, DISCOVERY)["items"]:
                for version in group["versions"]:
                    group_name = group["metadata"].get("name", "")
                    base = "/".join(filter(None, [root, group_name, version["version"]]))
                    for each in version.get("resources", ()):
                        kind = Kind(base, each["resource"], each["scope"] == "Namespaced")
                        singular = each.get("singularResource") or each["responseKind"]["kind"].lower()
                        for name in (each["resource"], singular, *each.get("shortNames", ())):
                            for full in (name, f"{name}.{group_name}", f"{name}.{version['version']}.{group_name}"):
                                self._kinds.setdefault(full, kind)

    def _read(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        server = urlsplit(self._config["clusters"][0]["cluster"]["server"])
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
        found: dict[str, Any] = json.loads(text)
        return found

    @cached_property
    def _config(self) -> Any:
        return yaml.safe_load(self._kubeconfig.read_text())

    @cached_property
    def _context(self) -> ssl.SSLContext:
        cluster, user = self._config["clusters"][0]["cluster"], self._config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        return context


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
