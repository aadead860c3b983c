"""ResourceQuotas as a library: which quota counts what, what a job takes of it, and what is left.

`outstanding` is what admitted jobs will still take, `fit` compares, `assessment` brings it together for one job, and
`wording` words the amounts. What a pod asks for in all is added up by `webhook.api.pod_resources`, amounts are read by
`webhook.api.quantity`. No I/O, no policy; the promise between replicas is `webhook.companions.reservations`.
The truth is the API server's admission plugin ResourceQuota and its evaluators:
https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/quota/v1/evaluator/core
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/admission/plugin/resourcequota/controller.go (`CheckRequest`)
"""
