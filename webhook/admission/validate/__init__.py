"""The validating pipeline.

`pipeline` collects findings of rules, of the policies' expressions (`custom_rules`), and about injections that other
webhooks removed (`required_injections`). `ratchet` keeps only findings that an update makes worse. `exemptions` removes
exempted findings.
"""
