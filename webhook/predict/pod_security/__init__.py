"""The Pod Security Standards as a library: `evaluate(level, version, template)`.

Pod Security admission checks only pods, not the pod templates of jobs. This package checks pod templates and gives the
same messages.
https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/pod-security-admission
"""

from webhook.predict.pod_security.checks import Result, evaluate
from webhook.predict.pod_security.levels import LATEST, NEWEST, Level, LevelVersion, Version
from webhook.predict.pod_security.pod import PodTemplate

__all__ = ["LATEST", "NEWEST", "Level", "LevelVersion", "PodTemplate", "Result", "Version", "evaluate"]
