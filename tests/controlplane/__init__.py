"""A real Kubernetes control plane for the tests: built from pinned Go modules, started on loopback in seconds."""
