"""Building blocks that several rules, injections and optional parts use.

Code for a single rule stays in the rule's module. Code that predicts the behaviour of Kubernetes, Kueue or the operator
is in `webhook.predict`.
"""
