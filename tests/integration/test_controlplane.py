"""The test cluster uses the programs in KUBEBUILDER_ASSETS, and reports a part that does not start."""

from pathlib import Path

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import ControlPlaneError
from tests.support.rare import rare


@pytest.mark.cluster
@rare
def test_kubebuilder_assets_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = assets()
    for name, command in {"etcd": own.etcd, "kube-apiserver": own.apiserver, "kubectl": (str(own.kubectl),)}.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ntouch "$0.used"\nexec {" ".join(command)} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with ControlPlane(controller_manager=False) as plane:
        assert plane.kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert sorted(path.stem for path in tmp_path.glob("*.used")) == ["etcd", "kube-apiserver", "kubectl"]
    assert assets().controller_manager == own.controller_manager


@pytest.mark.cluster
def test_failed_part_is_reported_with_its_log() -> None:
    with pytest.raises(ControlPlaneError, match=r"kube-apiserver ended while starting(.|\n)*no-such-mode"):
        ControlPlane(apiserver_flags=["--authorization-mode=no-such-mode"]).start()
