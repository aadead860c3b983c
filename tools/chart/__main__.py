"""`make chart`: writes the Helm chart into manifests/chart."""

from tools.chart import build

build.write()
