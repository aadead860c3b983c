"""Predictions of what Kubernetes, Kueue and the operator would do with a job later, computed at admission.

A module that decides something follows the source of the real component, names it, and is compared with it in
`tests/conformance`. Wording and advice are in separate modules. All modules are pure: facts about the cluster come in
through the context, and an unknown fact is assumed to be in the job's favour. The caller decides whether a prediction
denies the job, becomes a warning or is ignored. `webhook.api.mpijob.apply_operator_defaults` sets the operator's
defaults. `other_jobs` has other kinds of jobs that use quotas and Kueue.
"""
