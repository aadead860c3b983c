"""Optional parts: a package each, which the core does not need and does not import.

The docstring of a part describes its purpose, its `PART` what it adds to the core. `webhook/kit/optional_parts.py`
lists the parts. A part may import all of the core, and no other part.
"""
