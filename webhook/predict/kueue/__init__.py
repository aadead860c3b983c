"""What Kueue would make of a job, by its own rules: does it manage it, and could it ever admit it?

`managed` and `queues` answer the first question, `feasibility` the second, with the pod sets, flavors, cohorts and
topologies beside it. `priority` says which class a job's priority comes from, `topology_choice` which topology
annotations keep its workers together. Read from Kueue v0.18.3. Everything here asks the cluster view and no more. What
is unknown counts in the job's favour, so that what is found holds for certain. Whether a job is admitted now is Kueue's
to decide.
"""
