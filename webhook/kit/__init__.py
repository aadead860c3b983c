"""What rules, injections and optional parts are made with.

`context` is all that rules and injections see besides the job, `settings` are the base classes and field types of their
settings, `registry` finds them by their presence. Injections write to a `patch`, and `node_affinity` is what several of
them write there. `parts` lists the optional parts. What belongs to one rule stays in that rule; what predicts the
behaviour of Kubernetes, Kueue or the operator belongs to `webhook.predict`.
"""
