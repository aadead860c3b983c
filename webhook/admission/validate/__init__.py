"""The validating pipeline.

`pipeline` collects the findings of the rules, `custom_rules` those of the policies' expressions, and
`required_injections` those about injections that other webhooks removed. `ratchet` keeps for an update only findings
that it made worse, and `exemptions` removes those that the policy or an annotation excuses.
"""
