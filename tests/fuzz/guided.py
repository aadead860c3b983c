"""One target under atheris, which goes on from inputs that reach new code: `python -m tests.fuzz.guided TARGET ...`.

The further arguments are libFuzzer's: https://llvm.org/docs/LibFuzzer.html#options
"""

import sys

import atheris

with atheris.instrument_imports(include=["webhook"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    _, name, *options = sys.argv
    target = TARGETS[name]
    atheris.Setup([sys.argv[0], *options], target.spend)
    atheris.Fuzz()
