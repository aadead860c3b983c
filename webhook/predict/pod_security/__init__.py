"""The Pod Security Standards as a library: `evaluate(level, version, template)`.

Pod Security admission checks pods, so a workload with a violation is noticed only when its pods are rejected. This
package checks the template in the same way and with the same messages.
https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/pod-security-admission
"""

from webhook.predict.pod_security.checks import Result, evaluate
from webhook.predict.pod_security.levels import LATEST, NEWEST, Level, LevelVersion, Version
from webhook.predict.pod_security.pod import PodTemplate

__all__ = ["LATEST", "NEWEST", "Level", "LevelVersion", "PodTemplate", "Result", "Version", "evaluate"]
