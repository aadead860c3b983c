"""The SSH keys of a job, in the Secret that the operator creates.

`secret` decides which data a Secret gets, `pool` makes spare key pairs, `removal` deletes the Secrets of ended jobs. No
key is read from the cluster, logged, or stored after it has been sent.
"""
