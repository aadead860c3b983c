"""An in-toto statement about the build of a bundle: https://slsa.dev/spec/v1.1/provenance.

The statement is not signed. Sign the file SHA256SUMS with a key that your organisation trusts.
"""

import platform
from collections.abc import Mapping
from typing import Any

from webhook import __version__

BUILD_TYPE = "https://training.openshift.io/mpijob-webhook/bundle/v1"


def statement(subjects: Mapping[str, str], commit: str, locks: Mapping[str, str]) -> dict[str, Any]:
    """The statement. `subjects` and `locks` have SHA-256 sums by file name. `commit` is a commit of this repository."""
    materials = [{"name": name, "digest": {"sha256": digest}} for name, digest in locks.items()]
    source = {"name": "mpijob-webhook", "digest": {"gitCommit": commit.removesuffix("-dirty")}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": __version__, "commit": commit},
                "internalParameters": {"python": platform.python_version(), "machine": platform.machine()},
                "resolvedDependencies": [source, *materials],
            },
            "runDetails": {"builder": {"id": BUILD_TYPE}},
        },
    }
