"""Writes the example of each framework with `mpijob-webhook init --mpiuser`: `make examples`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.paths import EXAMPLES
from webhook.cli import first_job
from webhook.cli.first_job import FRAMEWORKS

FOLDER: Final = EXAMPLES / "frameworks"
_OWN: Final = "registry.example.com/ml/train:1.4"
# Its Dockerfile is in docs/openshift.md.
_EXTENDED: Final = "registry.example.com/ml/horovod:0.28.1-mpiuser"
_SAID: Final[dict[str, Any]] = dict.fromkeys(
    ("image", "name", "workers", "gpus", "namespace", "queue", "rdma", "mpiuser")
)


def jobs() -> dict[Path, str]:
    """The content of each file by path."""
    extended = {"horovod": {"image": _EXTENDED, "program": FRAMEWORKS["horovod"]["program"].split()}}
    return {
        FOLDER / f"{name}.yaml": text(framework=name, mpiuser=True, **extended.get(name, {})) for name in FRAMEWORKS
    }


def text(*, program: Sequence[str] = (), **options: Any) -> str:
    """The job for a framework. If there is no published image, its image is an example."""
    framework = FRAMEWORKS[options["framework"]]
    return first_job.text(first_job.wish({**_SAID, "image": framework["image"] or _OWN, **options}, program))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, content in jobs().items():
        path.write_text(content, encoding="utf-8")
