"""Limits on replies, on annotations, and on a metric."""

from typing import Final

MAX_NAMED_JOBS: Final = 3
"""Jobs named in the reply to a policy change."""
MAX_NAMED_INJECTIONS: Final = 6
"""Changed injections named in the reply to a policy change."""
MAX_WARNINGS: Final = 10
"""Warnings of a reply. The API server drops warnings beyond 4,096 characters in total."""
MAX_WARNING_CHARACTERS: Final = 120
"""Characters of a warning, as Kubernetes recommends."""
MAX_IDS_CHARACTERS: Final = 256
"""Characters of a warning that lists ids. The API server may cut longer warnings."""
MAX_LISTED_FINDINGS: Final = 50
"""Findings listed in a rejection."""
MAX_COUNTED_GPUS: Final = 10_000
"""GPUs that a rejected job adds to a metric: a typo in `replicas` may make the job very large."""
MAX_FAULT_CHARACTERS: Final = 500
"""Characters of a fault in the reply about an invalid policy. A key or value of a policy may have any length."""
MAX_SKIP_CHARACTERS: Final = 1024
"""Characters that are read from the annotation `training.openshift.io/skip`. The ids of all injections fit."""
MAX_UNKNOWN_SHOWN: Final = 3
"""Unknown injections named in a warning."""
MAX_SHOWN_VALUE_CHARACTERS: Final = 30
"""Characters of a value in a warning."""
MAX_SHOWN_PATH_CHARACTERS: Final = 60
"""Characters of a path in a warning."""
MAX_UNKNOWN_ANNOTATIONS: Final = 5
"""Unknown annotations of a job that are compared with the service's annotations."""
MAX_FINDINGS_PER_DECISION: Final = 1_000
"""Findings of each kind in a decision: denied, warned, audited and exempted.

The limit on processor time does not cover the writing of their texts.
"""
