"""Predictions for Kueue v0.18.3.

`managed` predicts if Kueue manages a job, and `feasibility` if a ClusterQueue could ever admit the job. Unknown facts
count in the job's favour, so a reported problem is certain.
"""
