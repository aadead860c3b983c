"""Limits for the messages of rules."""

from typing import Final

MAX_QUEUES_TRIED: Final = 10
"""Queues that are tried for a suggestion."""
MAX_SHOWN_KINDS: Final = 3
"""Kinds of nodes or accelerators named in a message."""
MAX_LISTED_SHAPES: Final = 10
"""Characters of an exact amount in a message. A longer amount is rounded."""
MAX_SHOWN_WORDS_CHARACTERS: Final = 24
"""Characters of a split command line in a warning."""
MAX_SHOWN_ARGUMENTS_CHARACTERS: Final = 18
"""Characters of the words after a script in a warning."""
MAX_MCA_ADVICE_CHARACTERS: Final = 50
"""Characters of advice with an MCA parameter in a warning."""
MAX_LISTED_WORDS: Final = 50
"""Words of a split command line in a fix."""
MAX_QUOTA_WARNINGS: Final = 3
"""Warnings about quotas without enough free capacity."""
MAX_NAMED_QUOTAS: Final = 5
"""Quotas named in a message."""
MAX_SPLIT_CHARACTERS: Final = 300
"""Characters of the longest command line that is split into words for a message."""
MAX_SHOWN_REGISTRIES: Final = 5
"""Registries named in a message."""
MAX_CLAIM_NAME_CHARACTERS: Final = 20
"""Characters of a claim's name in a warning."""
MAX_OBJECT_NAME_CHARACTERS: Final = 40
"""Characters of the name of an object in a warning."""
MAX_SHOWN_VARIABLES: Final = 3
"""Variables named in a message."""
MAX_SHOWN_LIMIT_RANGES: Final = 3
"""LimitRanges named in a message."""
MAX_SHOWN_CLASSES: Final = 5
"""Priority classes named in a message."""
MAX_POD_SECURITY_CHARACTERS: Final = 1_000
"""Characters of a message of Pod Security."""
MAX_SHOWN_QUEUES: Final = 3
"""Volcano queues named in a message."""
MAX_QUEUE_NAME_CHARACTERS: Final = 30
"""Characters of a queue's name in a warning."""
MAX_REJECTIONS: Final = 5
"""Rejections of an SCC that a message names in addition to the first rejection."""
