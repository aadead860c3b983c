"""The command `playground`: a page on which the verdict on a job comes while it is typed.

`verdicts` answers with texts alone: no file, no network. `server` is what hands it to a browser, `page_data` what the
page shows besides: examples, explanations, and the schemas that complete what is typed. The page itself is in `page/`
of the repository; what `make page` builds of it lies in this package.
"""

from typing import Final

from webhook.kit.parts import Part

PART: Final = Part(commands={"playground": "webhook.parts.playground.command:playground"})
