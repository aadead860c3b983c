"""The Pod Security Standards as a library: `evaluate(level, version, template)`.

Pod Security admission judges pods only, so a workload that embeds pod templates learns of a violation when its pods are
refused. This judges the template as admission will judge the pod, with the same texts: one file for each check in
`checks/`. Nothing here knows MPIJobs but `mpi_pods`, which says what the operator makes of a template.
https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/pod-security-admission
"""

from webhook.predict.pod_security.checks import Result
from webhook.predict.pod_security.levels import LATEST, Level, LevelVersion, Version
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.pod_security.standard import NEWEST, evaluate

__all__ = ["LATEST", "NEWEST", "Level", "LevelVersion", "PodTemplate", "Result", "Version", "evaluate"]
