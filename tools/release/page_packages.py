"""The npm packages in the page of `playground`, read from the page's lock file."""

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from tools.release.building import ROOT

LOCK: Final = ROOT / "page" / "package-lock.json"
_FOLDER: Final = "node_modules/"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str
    """An SPDX expression."""
    integrity: str
    """https://www.w3.org/TR/SRI/"""

    @property
    def purl(self) -> str:
        """The name for vulnerability scanners: https://github.com/package-url/purl-spec."""
        return f"pkg:npm/{quote(self.name)}@{self.version}"

    def component(self) -> dict[str, Any]:
        """The entry in a bill of materials: https://cyclonedx.org/docs/1.6/json/."""
        algorithm, _, digest = self.integrity.partition("-")
        return {
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            "version": self.version,
            "purl": self.purl,
            "licenses": [{"expression": self.licence}],
            "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": b64decode(digest).hex()}],
        }


def packages() -> list[Package]:
    locked = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    return [
        Package(path.rpartition(_FOLDER)[2], entry["version"], entry["license"], entry["integrity"])
        for path, entry in locked.items()
        if path and not entry.get("dev")
    ]
