"""The real Kubeflow Trainer and JobSet, on a test cluster."""
