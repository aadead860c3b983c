"""Which existing jobs break the current policy, as numbers and as reports.

`standing` computes the verdicts periodically, `reports` writes them to the cluster.
"""
