"""TLS for admission webhooks, usable without the rest: authority, serving certificates, CA bundles and their rotation.

`authority` makes certificates. `state` and `rotation` decide the next step (pure), and `self_managed` takes it through
a `Store` that the user of the package implements. `files` follows certificates that are renewed elsewhere, and
`serving` replaces the certificate of a running listener. Imports nothing of `webhook`, and no Kubernetes client.
"""
