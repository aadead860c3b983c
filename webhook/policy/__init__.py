"""The administrator's decisions: which rules apply where, how strictly, and who is exempt.

`document` is the policy document, made of the settings of every rule and injection. `store` reads it from ConfigMaps.
`layers` merges several documents, value by value, and records where each value came from. `in_force` compiles the
result for reviews, and `webhook.server.policy_watch` puts it in force. Nothing here reads a job or carries a decision
out: that is `webhook.admission`.
"""
