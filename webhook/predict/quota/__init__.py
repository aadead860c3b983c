"""ResourceQuotas as a library: the objects that a quota includes, a job's use of it, and the rest.

`outstanding` is what admitted jobs will still take, `fit` compares, `assessment` combines both for one job, and
`wording` words the amounts. `webhook.api.pod_resources` adds up the requests of a pod, `webhook.api.quantity` reads
amounts. No I/O, no policy; the promise between replicas is `webhook.controllers.reservations`. The reference is the API
server's admission plugin ResourceQuota and its evaluators:
https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/quota/v1/evaluator/core
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/admission/plugin/resourcequota/controller.go (`CheckRequest`)
"""
