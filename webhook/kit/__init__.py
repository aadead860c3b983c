"""Building blocks of rules and injections.

`context` is everything that they see besides the job, `settings` are the base classes and field types of their
settings, `registry` discovers them by import. Injections write to a `patch`; several of them add a `node_affinity`.
Code of one rule stays in that rule; code that predicts the behaviour of Kubernetes, Kueue or the operator belongs to
`webhook.predict`.
"""
