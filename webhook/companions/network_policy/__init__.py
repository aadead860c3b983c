"""A NetworkPolicy for every job, by the posture that the policy gives it or that it has chosen.

`wanted` makes the object: pure. `seen` is what is kept of the objects that exist, and `upkeep` creates them, puts them
back and tells the user of what is in the way. The settings, and what no NetworkPolicy filters, are the rule's
(`webhook.rules.network_policy`).
"""

from typing import Final

NAME: Final = "network-policies"
"""What it is called in metrics, logs and concerns."""
RULE: Final = "network-policy"
"""The rule by whose settings it goes."""
