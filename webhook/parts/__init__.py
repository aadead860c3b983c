"""Optional parts. Each part is a package which the core does not import.

The docstring of a part describes its purpose, and `PART` declares its additions to the core. The parts are listed in
`webhook/kit/optional_parts.py`. A part may import any module of the core, but no other part.
"""
