"""Finds problems of an installation, and suggests fixes. Nothing is changed on the cluster.

`gather` reads a cluster once, and returns `facts`. It uses `rights` and `certificates`. Each file in `checks/` turns
facts into diagnoses, without reading the cluster. `webhook.cli.doctor` prints the diagnoses.
"""
