"""The SSH keys of a job, in the Secret that the operator creates.

`secret` decides what a Secret needs, `pool` makes key pairs in advance, `removal` deletes the Secrets of ended jobs. No
key is read from the cluster, logged or kept once it has been sent.
"""
