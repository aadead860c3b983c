"""Problems of an installation, and their fixes.

`gather` reads a cluster once, as `facts`. Each file in `checks/` turns facts into diagnoses, without reading the
cluster again. `rights` and `certificates` are the parts of that reading with rules of their own. Nothing is changed on
the cluster; `webhook.cli` prints the diagnoses.
"""
