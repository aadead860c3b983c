"""Which jobs that exist break the policy of today, as numbers and as reports.

`standing` works the verdicts out again and again, `reports` writes them down.
"""
