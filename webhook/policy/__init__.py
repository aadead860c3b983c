"""The administrator's policy: which rules apply where, with which actions, and who is exempt.

`document` is the policy document, assembled from the settings of every rule and injection. `store` reads documents from
ConfigMaps. `layers` merges documents value by value, and records the source of each value. `in_force` compiles the
merged document for reviews, and `webhook.server.policy_watch` activates it. `webhook.admission` applies it to jobs.
"""
