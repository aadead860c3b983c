"""The SSH keys of a job, in the Secret that the operator creates.

`secret` decides what a Secret needs, `pool` has key pairs ready, `pair` makes one, `removal` deletes the Secrets of
jobs that have ended.
No key is read from the cluster, logged or kept once it has been sent.
"""
