"""What the administrator decides: which rules hold where, how strictly, and who is exempt.

`document` is the policy document, made of the settings of every rule and injection; `store` reads it from ConfigMaps;
`layers` merges several, value by value, and remembers where each came from; `in_force` compiles the result for the hot
path, where `webhook.server.policy_watch` puts it in force. Nothing here looks at a job or carries a decision out: that
is `webhook.admission`.
"""
