"""Kubeflow Trainer and JobSet as they are, on a control plane of the tests."""
