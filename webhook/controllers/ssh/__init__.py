"""The SSH keys of a job, in the Secret that the operator creates.

No key is read from the cluster, logged, or stored after it has been sent.
"""
