"""Optional parts. Each part is a package.

The docstring of a part describes its purpose, and `PART` declares its additions to the core. The parts are listed in
`webhook/kit/optional_parts.py`. A part may import any module of the core, but no other part. The core must not contain
an import statement for a part.
"""
