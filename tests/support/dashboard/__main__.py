"""`make dashboard`: writes the dashboard into manifests/, and the page about it."""

from tests.support.dashboard import build, page

build.FILE.write_text(build.manifest(), encoding="utf-8")
page.PAGE.write_text(page.page(), encoding="utf-8")
