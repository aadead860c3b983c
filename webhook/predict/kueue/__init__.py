"""Predicts Kueue's treatment of a job: whether it manages the job, and whether it could ever admit it.

`managed` and `queues` answer the first question, `feasibility` the second, with pod sets, flavors, cohorts and
topologies in their own modules. `priority` finds the class of a job's priority, `topology_choice` the topology
annotations that keep its workers together. Read from Kueue v0.18.3. Everything here uses only the cluster view. Unknown
facts are assumed in the job's favour, so that findings are certain. Kueue decides whether a job is admitted now.
"""
