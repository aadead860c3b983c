"""Building blocks of rules, injections and optional parts.

`context` is the input of rules and injections except the job, `settings` are the base classes and field types
of their settings, `registry` discovers them by import. Injections write to a `patch`; several of them add a
`node_affinity`. `parts` lists the optional parts. Code of one rule stays in that rule; code that predicts the behaviour
of Kubernetes, Kueue or the operator belongs to `webhook.predict`.
"""
