"""Limits of policy documents."""

from typing import Final

MAX_LISTED_CHOICES: Final = 8
"""Choices of a setting that are listed in a message."""
MAX_EXAMPLE_CHARACTERS: Final = 120
"""Characters of an example made from a user's text."""
MAX_ENTRIES: Final = 1_000
"""Entries of a list or mapping in a policy. Each review reads all of them."""
MAX_EXPRESSION_CHARACTERS: Final = 2_000
"""Characters of a CEL expression. Its compilation cannot be interrupted."""
MAX_RULE_TEXT_CHARACTERS: Final = 300
"""Characters of a custom rule's message or fix."""
MAX_CUSTOM_RULES: Final = 100
"""Custom rules of a policy. Each review evaluates all of them, and evaluation cannot be interrupted."""
MAX_NAMED_DOCUMENTS: Final = 8
"""Policy documents that a log line names."""
MAX_DOCUMENT_CHARACTERS: Final = 256 * 1024
"""Characters of a policy document."""
MAX_DOCUMENT_FAULTS: Final = 50
"""Faults of a broken document that an Event and the log report."""
