"""Controllers that create, complete, delete or report objects of a job: SSH keys, reservations, and a base class.

`ssh/` and `reservations/` also answer within a review: a Secret gets its keys, and two jobs never get the same quota.
`reconciler` is the base of controllers in the background, most of which are optional parts.
They may call the API server. Decisions about the job itself belong to `webhook.admission`, reading the cluster to
`webhook.client`.
"""
