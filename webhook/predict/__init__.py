"""Predictions of what Kubernetes, Kueue and the operator would do with a job later, computed at admission.

Modules that decide follow the source of the real component, name it, and are compared with it in `tests/conformance`;
wording and advice are in modules next to them. All are pure: facts of the cluster come in through the context, and
unknown facts are assumed in the job's favour. There is no policy here: the caller decides whether a prediction denies,
warns or is ignored. `webhook.api.mpijob.apply_operator_defaults` sets the operator's defaults. `other_jobs` has the
kinds of jobs that optional parts add to quotas and to Kueue.
"""
