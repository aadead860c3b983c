"""A valid pod template with nearly every field that the API server validates."""

from pathlib import Path
from typing import Any, Final

from webhook.api import yaml

RICH: Final[dict[str, Any]] = yaml.load_all(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))[0]
