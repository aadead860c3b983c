"""TLS for admission webhooks, usable without the rest: authority, serving certificates, CA bundles and their rotation.

`authority` makes certificates, `state` and `rotation` decide what to do next (pure), `self_managed` does it
through a `Store` that the user of the package implements, `files` follows certificates that something else renews, and
`serving` exchanges what a listener serves while it runs. Imports nothing of `webhook`, and no Kubernetes client.
"""
