"""The running service: `mpijob-webhook serve`.

`process` has the event loop and the signals. `service` starts and stops everything. `http_server` and `review_port`
read requests, and `review_handler` answers them. `cluster_link` connects to the cluster, and `policy_watch` loads the
policies. `webhook.admission` decides about jobs.
"""
