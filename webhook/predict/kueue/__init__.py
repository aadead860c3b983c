"""Predictions for Kueue v0.18.3: whether Kueue manages a job, and whether a ClusterQueue could ever admit the job.

`managed` and `queues` answer the first question, `feasibility` the second; pod sets, flavors, cohorts and topologies
have separate modules. `priority` finds a job's priority class, `topology_choice` the topology annotations that keep the
job's workers together. All modules read only the cluster view. An unknown fact is assumed to be in the job's favour, so
a reported problem is certain. Kueue itself decides when it admits a job.
"""
