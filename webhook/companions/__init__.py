"""Work beside reviews: what has to be made, completed, removed or told for a job.

`ssh/` completes the Secret with a job's SSH keys, `reservations/` keeps quotas from being promised twice,
`deadline_events` tells users when a job's time is over, `job_metrics` has the numbers of jobs.
Companions may talk to the API server and run in the background. What is decided about the job itself belongs to
`webhook.admission`, what is known of the cluster to `webhook.client`.
"""
