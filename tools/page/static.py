"""Builds the playground for any web server: `python -m tools.page.static FOLDER`. The browser computes the verdicts."""

import argparse
import json
import shutil
import sys
from pathlib import Path

from tools.page import build, python
from webhook.parts.playground.page_data import page_data


def write(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(build.built(), folder)
    (folder / "loopback.js").unlink()
    (folder / "static.js").rename(folder / "backend.js")
    (folder / "archives.json").write_text(json.dumps(python.write(folder)))
    (folder / "data.json").write_text(json.dumps(page_data()))
    about = json.loads((build.dependency("pyodide") / "package.json").read_text())
    licences = folder / "licences.txt"
    named = f"pyodide {about['version']}, under {about['license']}, with Python, under the PSF's licence."
    licences.write_text(f"{named} The licence of a wheel is in the wheel.\n\n----\n\n{licences.read_text()}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.page.static", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        write(folder)
    except build.NotBuilt as error:
        sys.exit(str(error))
    sys.stdout.write(f"The page is in {folder}: any web server can serve it.\n")


if __name__ == "__main__":
    main()
