"""Compares a job's use of its namespace's ResourceQuotas with the amounts that are left.

The quota use that admitted jobs have not reached yet is called a promise. `webhook.controllers.reservations` shares
promises between replicas of the webhook. The computation follows the API server's quota admission:
https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/quota/v1/evaluator/core
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/admission/plugin/resourcequota/controller.go (`CheckRequest`)
"""
