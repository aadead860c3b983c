"""The running service: `mpijob-webhook serve`.

`process` has the event loop and the signals. `service` starts and stops everything according to `settings`.
`http_server` and `review_port` read requests, and `review_handler` answers them. `ops` serves health and metrics.
`cluster_link` connects to the cluster, and `policy_watch` loads the policies. `certificates/` provides the served
certificate. `telemetry`, `metrics` and `log` are for administrators. The pipelines of `webhook.admission` decide about
jobs; this package passes them everything they need as arguments.
"""
