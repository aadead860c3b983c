"""The running service: `mpijob-webhook serve`.

`service` starts everything from the `settings` and ends it; `process` has the event loop and the signals. `reviews`
answers requests, which `http_server` and `review_port` read, with `requests`, `ports` and `ops` around it.
`cluster_link` is the connection to the cluster, with `policy_watch`. `certificates/` provides what
is served; `telemetry`, `metrics` and `log` are what operators see; `clock` has the day.
No verdict is found here: the pipelines of `webhook.admission` decide, and get all they need as arguments.
"""
