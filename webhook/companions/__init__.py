"""Controllers next to reviews: they make, complete, remove or report objects of a job.

`ssh/` completes the Secret with a job's SSH keys, `reservations/` prevents two jobs from getting the same quota, and
`reconciler` is the base of the others, most of which are optional parts.
Controllers may call the API server and run in the background. Decisions about the job itself belong to
`webhook.admission`, reading the cluster to `webhook.client`.
"""
