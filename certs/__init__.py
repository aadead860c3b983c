"""TLS for admission webhooks: authority, serving certificates, CA bundles and their rotation.

`state` and `rotation` are pure: they decide the next step. `self_managed` takes the step through a `Store`, which the
user of the package implements. The package imports neither `webhook` nor a Kubernetes client.
"""
