"""The command `why`: the reason why an existing job does not run, from its status, events and logs.

`reader` reads what a `sight` of one job has, `causes` has a file for each place where a job gets stuck, `state` says
its state, `diagnosis` puts the causes in order, and `report` shows them. What admission would say comes in
as findings of the rules: where the cluster and a rule speak of the same fault, the cluster says what is wrong and the
rule where and what to do.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(commands={"why": "webhook.parts.why.command:why"})
