"""The running service: `mpijob-webhook serve`.

`service` starts everything from the `settings` and stops it; `process` has the event loop and the signals. `reviews`
answers the requests that `http_server` and `review_port` read, with `requests`, `ports` and `ops` around it.
`cluster_link` is the connection to the cluster, with `policy_watch`. `certificates/` provides the served certificate.
`telemetry`, `metrics` and `log` are what operators see; `clock` has the current time. The pipelines of
`webhook.admission` decide, not this package; it passes them everything they need as arguments.
"""
