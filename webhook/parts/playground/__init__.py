"""The command `playground`: a page that shows the verdict on a job while the user types.

`verdicts` computes verdicts from texts, without files and network. `server` serves the page and the verdicts.
`page_data` has the other content of the page: examples, explanations, and the schemas for completion. The sources of
the page are in `page/` of the repository; `make page` builds them into this package.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(commands={"playground": "webhook.parts.playground.command:playground"})
