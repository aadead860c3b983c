"""The Pod Security Standards as a library: `evaluate(level, version, template)`.

Pod Security admission judges only pods, so the violation of a workload with pod templates shows when its pods are
rejected. This judges the template as admission will judge the pod, with the same texts.
https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/pod-security-admission
"""

from webhook.predict.pod_security.checks import Result, evaluate
from webhook.predict.pod_security.levels import LATEST, NEWEST, Level, LevelVersion, Version
from webhook.predict.pod_security.pod import PodTemplate

__all__ = ["LATEST", "NEWEST", "Level", "LevelVersion", "PodTemplate", "Result", "Version", "evaluate"]
