"""Building blocks for rules, injections and optional parts.

`context` is the input of rules and injections besides the job, `settings` has the base classes and field types of their
settings, `registry` imports and registers them. Injections write to a `patch`; several of them add a `node_affinity`.
`optional_parts` lists the optional parts. Code for a single rule stays in the rule's module; code that predicts the
behaviour of Kubernetes, Kueue or the operator belongs to `webhook.predict`.
"""
