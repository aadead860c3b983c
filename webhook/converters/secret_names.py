"""Recognizes names such as API_KEY. The value of such a variable or argument is probably a secret."""

import re
from typing import Final

ADVICE: Final = (
    "looks like a secret, which any user who may read the job can read: put it into a Secret, and refer to that"
    " (env: valueFrom.secretKeyRef)"
)
_NAME: Final = re.compile(
    r"(?:.*[_-])?(?:pass(?:word|wd|phrase)|secret|token|credentials?|(?:api|access|secret|private)[_-]?key)",
    re.IGNORECASE,
)
# Names such as PAD_TOKEN. This token is a word of a text, not a secret.
_WORD: Final = re.compile(r"(?:.*[_-])?(?:bos|cls|eos|mask|pad|sep|unk)[_-]token", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not _WORD.fullmatch(name)
