"""Objects beside a job, each kind in a package of its own: what has to be made, completed or removed for it.

`ssh/` completes the Secret with a job's SSH keys, `reservations/` keeps quotas from being promised twice.
Companions may talk to the API server and run in the background. What is decided about the job itself belongs to
`webhook.admission`, what is known of the cluster to `webhook.client`.
"""
