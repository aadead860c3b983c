"""Code that tests share. Tests import from here, never from each other.

- Jobs: `jobs` (a valid job, changed at dotted paths), `strategies` and `any_job` (generated), `corpus` (tests/corpus).
- Hostile jobs: `hostile`.
- A single rule: `rule_checks`. A single injection: `injecting`. Properties of all injections: `promises`.
- Short forms of objects: `kueue_objects`, `quota_objects`, `limit_ranges`, `namespaces`, `networks`, `policies`,
  `secret_reviews`, `doctor_facts`. Generated objects: `worlds/` and `pod_security/`.
- Fakes: `watch_api`, `object_api` and `ca_store` (API servers in memory), `watching`, `owned_objects`, `logs`.
- On loopback: `live_service` (the real service), `loopback`; TLS clients in `tls` and `trust`.
- On a real cluster: `installation/` (the service as installed), `api_client`, `live_views`, `queued_jobs`, `placement`.
- On the test machine: `mpi/` (pods as Linux namespaces), `image` (built by buildah).
- Paths in the repository: `paths`.
"""
