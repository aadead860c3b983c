"""`make chart`: writes the Helm chart into manifests/chart."""

from tests.support.chart import build

build.write()
