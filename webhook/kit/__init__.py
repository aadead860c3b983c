"""What rules and injections are made with.

`context` is all that they see besides the job, `settings` are the base classes and field types of their settings,
`registry` finds them by their presence. What belongs to one rule stays in that rule; what predicts the behaviour of
Kubernetes, Kueue or the operator belongs to `webhook.predict`.
"""
