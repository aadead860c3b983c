"""YAML files have the same values without libyaml, which is missing in a browser."""

import json
import subprocess
import sys

from tests.support.paths import EXAMPLES, MANIFESTS
from webhook.api import yaml

PROGRAM = """
import json, sys
sys.modules["yaml._yaml"] = None  # as if libyaml were missing
from webhook.api import yaml
assert "C" not in yaml._Loader.__name__[0]
for path in sys.argv[1:]:
    values = yaml.load_all(open(path).read())
    print(json.dumps([values, yaml.dump(values), yaml.dump_document(values), yaml.split(open(path).read())]))
"""


def test_values_and_dumps_are_the_same_without_libyaml() -> None:
    paths = [*EXAMPLES.glob("*.yaml"), *(MANIFESTS / "policies").glob("*.yaml")]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for path, line in zip(paths, done.stdout.splitlines(), strict=True):
        text = path.read_text()
        values = yaml.load_all(text)
        here = [values, yaml.dump(values), yaml.dump_document(values), yaml.split(text)]
        assert json.loads(line) == here, path
