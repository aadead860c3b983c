"""The validating pipeline.

`pipeline` collects the findings of the rules, of the policies' expressions (`custom_rules`), and about injections that
other webhooks removed (`required_injections`). `ratchet` keeps only findings that an update makes worse. `exemptions`
removes findings that the policy or an annotation exempts.
"""
