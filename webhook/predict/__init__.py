"""What Kubernetes, Kueue and the operator would say of a job later, worked out at admission.

Modules that decide follow the source of the real component, name it, and are held against it in `tests/conformance`;
wording and advice stand beside them. All are pure: what is known of the cluster comes in through the context, and what
is unknown counts in the job's favour. No policy: whether a prediction denies, warns or is ignored is decided above.
The operator's defaults are set by `webhook.api.mpijob.apply_operator_defaults`. `other_jobs` has the kinds of jobs that
optional parts add to quotas and to Kueue.
"""
