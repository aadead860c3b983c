"""OpenShift's Security Context Constraints: which of them a pod gets, and with which values."""
