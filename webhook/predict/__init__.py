"""What Kubernetes, Kueue and the operator would say of a job later, worked out at admission.

Each module follows the source of the real component, names it, and is held against it in `tests/conformance`. It is
pure: what is known of the cluster comes in through the context, and what is unknown counts in the job's favour.
No policy: whether a prediction denies, warns or is ignored is decided above.
"""
