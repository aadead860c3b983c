"""The command `playground`: a page that shows the verdict on a job while it is typed.

`verdicts` takes and returns only texts: no file, no network. `server` serves it to a browser, `page_data` has the other
content of the page: examples, explanations, and the schemas for completion. The page itself is in `page/` of the
repository; `make page` builds it into this package.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(commands={"playground": "webhook.parts.playground.command:playground"})
