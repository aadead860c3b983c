"""A NetworkPolicy for every job, with the posture that the policy sets or the job has chosen.

`wanted` makes the object: pure. `seen` has the fields that are kept of existing objects. `upkeep` creates and restores
the objects, and tells the user about obstacles. The settings, and what no NetworkPolicy filters, are the rule's
(`webhook.rules.network_policy`).
"""

from typing import Final

NAME: Final = "network-policies"
"""The controller's name in metrics, logs and concerns."""
RULE: Final = "network-policy"
"""The rule that has the settings."""
