"""The administrator's policy: which rules apply where, with which actions, and who is exempt.

`store` reads policy documents from ConfigMaps. `layers` merges documents, and `in_force` compiles the result for
reviews.
"""
