"""Limits on data from the network."""

from typing import Final

MAX_OBJECT_BYTES: Final = 1536 * 1024
"""Bytes of an object that is decoded. A larger object cannot be stored (https://etcd.io/docs/v3.6/dev-guide/limit/)."""
MAX_NESTED_VALUES: Final = 20_000
"""Mappings and lists in an object. Even an empty one takes hundreds of bytes. No timer can interrupt decoding."""
MAX_CHARACTERS_BEFORE_PROGRAM: Final = 200
"""Characters before mpirun that are searched for its folder and for assignments. The search takes quadratic time."""
MAX_CHARACTERS_BEFORE_EMPTY_CALL: Final = 10_000
"""Characters before an mpirun call without a program. The service counts the quotes in them in quadratic time."""
MAX_WORDS_OF_STARTERS: Final = 12
"""Words of a command that are searched for programs such as `timeout`, which start another program."""
MAX_UID_CHARACTERS: Final = 256
"""Characters of a review's uid, which the reply repeats."""
MAX_QUANTITY_CHARACTERS: Final = 64
"""Characters of a quantity. Arithmetic with more digits is slow."""
MAX_QUANTITY_EXPONENT: Final = 99
"""Exponent of a quantity. 1e999999999 would take gigabytes of memory."""
MAX_IMAGE_CHARACTERS: Final = 1024
"""Characters of an image reference. Longer references are rejected."""
MAX_NAMES_LOOKED_AT: Final = 2000
"""Names that the search for a similar name considers. A namespace may have thousands of names."""
MAX_NAMES_COMPARED: Final = 16
"""Names that are compared letter by letter, which takes hundreds of microseconds each."""
MAX_SHOWN_KEY_BYTES: Final = 12
"""Bytes of a user's text, such as an annotation's value, in a warning."""
MAX_DURATION_CHARACTERS: Final = 16
"""Characters of a duration."""
MAX_MCA_VALUE_CHARACTERS: Final = 1000
"""Characters of an injected MCA parameter."""
MAX_ALIASED_VALUES: Final = 100_000
"""Values that aliases may repeat in a YAML document. The limit protects memory."""
MAX_YAML_DEPTH: Final = 200
"""Levels of nesting in a YAML document. The limit prevents deep recursion; Kubernetes' deepest schemas have fewer than
100.
"""
