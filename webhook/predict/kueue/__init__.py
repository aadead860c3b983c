"""What Kueue would make of a job, by its own rules: does it manage it, and could it ever admit it?

Read from Kueue v0.18.3. Everything here asks the cluster view and no more; what the view cannot tell counts in the
job's favour, so that what is found holds for certain.
"""
