"""ResourceQuotas: a job's use of its namespace's quotas, compared with what is left.

The quota use that admitted jobs have not reached yet is called a promise. `webhook.controllers.reservations` shares
promises between replicas of the webhook. The source is the API server's admission plugin and its evaluators:
https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/quota/v1/evaluator/core
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/admission/plugin/resourcequota/controller.go (`CheckRequest`)
"""
