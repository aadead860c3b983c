"""Writes the example of each framework with `mpijob-webhook init --mpiuser`: `make examples`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.paths import EXAMPLES
from webhook.cli import first_job
from webhook.cli.first_job import FRAMEWORKS

FOLDER: Final = EXAMPLES / "frameworks"
_EXAMPLE: Final = "registry.example.com/ml/train:1.4"
# The Dockerfile of this image is in docs/openshift.md.
_EXTENDED: Final = "registry.example.com/ml/horovod:0.28.1-mpiuser"
_NO_OPTIONS: Final[dict[str, Any]] = dict.fromkeys(
    ("image", "name", "workers", "gpus", "namespace", "queue", "rdma", "mpiuser")
)


def jobs() -> dict[Path, str]:
    extended = {"horovod": {"image": _EXTENDED, "program": FRAMEWORKS["horovod"]["program"].split()}}
    return {
        FOLDER / f"{name}.yaml": text(framework=name, mpiuser=True, **extended.get(name, {})) for name in FRAMEWORKS
    }


def text(*, program: Sequence[str] = (), **options: Any) -> str:
    """The job for a framework. If the framework has no published image, the image is a placeholder."""
    framework = FRAMEWORKS[options["framework"]]
    return first_job.text(first_job.wish({**_NO_OPTIONS, "image": framework["image"] or _EXAMPLE, **options}, program))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, content in jobs().items():
        path.write_text(content, encoding="utf-8")
