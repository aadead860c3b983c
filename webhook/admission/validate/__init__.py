"""The validating pipeline.

`pipeline` collects what the rules find, `custom_rules` what expressions of policies find, and `required_injections`
what other webhooks took away. `ratchet` keeps from an update only what it made worse, and `exemptions` takes out what
the policy or an annotation excuses.
"""
