"""The command `why`: the reason why an existing job does not run, from its status, events and logs.

`reader` reads a job and its objects, each module of `causes` finds the causes of one stage, and `diagnosis` orders the
causes. If a rule and the cluster report the same problem, `why` takes the text from the cluster and the fix from the
rule.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(commands={"why": "webhook.parts.why.command:why"})
