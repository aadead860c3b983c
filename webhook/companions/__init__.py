"""Work beside reviews: what has to be made, completed, removed or told for a job.

`ssh/` completes the Secret with a job's SSH keys, `reservations/` keeps quotas from being promised twice, and a
`reconciler` is what others are made with: most are optional parts.
Companions may talk to the API server and run in the background. What is decided about the job itself belongs to
`webhook.admission`, what is known of the cluster to `webhook.client`.
"""
