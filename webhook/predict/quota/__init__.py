"""ResourceQuotas: the objects that a quota counts, a job's use of it, and the amount that is left.

`not_yet_used` has what admitted jobs will still use, `fit` compares, `assessment` combines both for one job, and
`wording` describes amounts. `webhook.api.pod_resources` adds up a pod's requests, `webhook.api.quantity` parses
quantities. `webhook.controllers.reservations` shares the promises between replicas. The source is the API
server's admission plugin ResourceQuota and its evaluators:
https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/quota/v1/evaluator/core
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/admission/plugin/resourcequota/controller.go (`CheckRequest`)
"""
