"""The command `playground`: a page that shows the verdict on a job while the user types.

`verdicts` judges the jobs that the user types, `server` serves the page, and `page_data` has the examples and
explanations. `make page` builds the page from `page/` of the repository into this package.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(commands={"playground": "webhook.parts.playground.command:playground"})
