"""TLS for admission webhooks: authority, serving certificates, CA bundles and their rotation.

`authority` makes certificates. `state` and `rotation` decide the next step, without side effects. `self_managed` takes
this step through a `Store`, which the user of the package implements. `files` serves certificates from files that other
programs renew. `serving` replaces the certificate of a running listener. The package imports neither `webhook` nor a
Kubernetes client.
"""
