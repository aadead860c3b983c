"""The administrator's policy: which rules apply where, with which actions, and who is exempt.

`document` is the policy document, assembled from the settings of every rule and injection. `store` reads documents from
ConfigMaps. `layers` merges documents value by value, and records the source of each value. `in_force` compiles the
result for reviews, and `webhook.server.policy_watch` activates it. This package reads no job and executes no decision:
`webhook.admission` does.
"""
