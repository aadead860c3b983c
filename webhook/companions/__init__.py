"""Controllers next to reviews: they make, complete, remove or report objects of a job.

`ssh/` completes the Secret with a job's SSH keys, `reservations/` prevents two jobs from getting the same quota,
`deadline_events` tells users when a job's time is over, `job_metrics` counts jobs. Controllers may call the API server
and run in the background. Decisions about the job itself belong to `webhook.admission`, reading the cluster to
`webhook.client`.
"""
