"""The bundle for disconnected clusters: it is built once, and installed without a network."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.build import ensure_built
from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.paths import ROOT
from tests.support.rare import rare
from tools.release import building, page_packages
from webhook import __version__
from webhook.api import yaml

DIGEST = "sha256:" + "0123456789abcdef" * 4
IMAGE = f"registry.example.com/ml/mpijob-webhook@{DIGEST}"
# Packages are fetched and installed twice.
pytestmark = [pytest.mark.timeout(900), rare]


@dataclass(frozen=True)
class Bundle:
    folder: Path
    python: Path

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    python = environment.this(Progress(), ROOT / "requirements" / "bundle.txt")
    folder = tmp_path_factory.mktemp("bundle")
    made = subprocess.run(
        [python, "-m", "tools.release.bundle", folder, "--image", IMAGE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return Bundle(folder, python)


def refused(python: Path, *arguments: str | Path) -> str:
    command = [python, "-m", "tools.release.bundle", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode
    return done.stderr


def test_nonempty_folder_and_invalid_image_are_rejected(bundle: Bundle, tmp_path: Path) -> None:
    assert f"{bundle.folder} is not empty" in refused(bundle.python, bundle.folder)
    assert "is not a tag" in refused(bundle.python, tmp_path / "new", "--image", "a:b:c")


def test_checksums_match_all_files(bundle: Bundle) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=bundle.folder, check=True)
    named = {line.split("  ", 1)[1] for line in bundle.text("SHA256SUMS").splitlines()}
    there = {path.relative_to(bundle.folder).as_posix() for path in bundle.folder.rglob("*") if path.is_file()}
    assert there - named == {"SHA256SUMS"}


def test_wheels_are_pinned_by_hash_and_no_host_is_named(bundle: Bundle) -> None:
    lines = bundle.text("requirements.txt").splitlines()
    assert len(lines) == len([*(bundle.folder / "wheels").iterdir()])
    assert all(re.fullmatch(r"[\w.-]+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert f"mpijob-webhook=={__version__}" in {line.split()[0] for line in lines}


def test_bill_of_materials_has_exactly_the_installed_packages(bundle: Bundle) -> None:
    found = json.loads(bundle.text("sbom.cdx.json"))
    assert found["bomFormat"] == "CycloneDX"
    parts = {(re.sub(r"[-_.]+", "-", each["name"]).lower(), each["version"]) for each in found["components"]}
    locked = {tuple(line.split()[0].split("==")) for line in bundle.text("requirements.txt").splitlines()}
    own = ("mpijob-webhook", __version__)
    # npm packages are part of the page. The wheel contains the page if the page is built.
    of_page = {(package.name, package.version) for package in page_packages.packages() if building.PAGE.is_dir()}
    wanted = {*locked, *of_page}
    assert parts | {own} == {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in wanted}
    assert found["metadata"]["component"]["name"] == "mpijob-webhook"


def test_provenance_lists_the_files_of_the_bundle(bundle: Bundle) -> None:
    statement = json.loads(bundle.text("provenance.json"))
    sums = {name: found for found, name in (line.split("  ", 1) for line in bundle.text("SHA256SUMS").splitlines())}
    del sums["provenance.json"]
    assert {each["name"]: each["digest"]["sha256"] for each in statement["subject"]} == sums
    source, *locks = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert re.fullmatch("[0-9a-f]{40}", source["digest"]["gitCommit"])
    assert {each["name"] for each in locks} == {f"requirements/{name}.txt" for name in ("run", "build", "bundle")} | (
        {"page/package-lock.json"} if building.PAGE.is_dir() else set()
    )


def test_manifests_and_mirrors_refer_to_the_image_by_its_digest(bundle: Bundle) -> None:
    kubectl = ensure_built() / "bin" / "kubectl"
    rendered = subprocess.run([kubectl, "kustomize", bundle.folder], capture_output=True, text=True, check=True).stdout
    pods = [each["spec"]["template"]["spec"] for each in yaml.load_all(rendered) if each["kind"] == "Deployment"]
    assert [container["image"] for pod in pods for container in pod["containers"]] == [IMAGE]
    (mirrored,) = yaml.load_all(bundle.text("mirror-set.yaml"))
    assert mirrored["kind"] == "ImageDigestMirrorSet"
    assert [each["source"] for each in mirrored["spec"]["imageDigestMirrors"]] == [IMAGE.partition("@")[0]]
    (wanted,) = yaml.load_all(bundle.text("oc-mirror.yaml"))
    assert wanted["mirror"]["additionalImages"] == [{"name": IMAGE}]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to create a Linux network namespace")
def test_bundle_installs_and_works_without_a_network(bundle: Bundle, tmp_path: Path) -> None:
    """Each step of the documented installation, with folders of the test instead of the image's folders."""
    (step,) = re.findall(r"^RUN ((?:.*\\\n)*.*)", (bundle.folder / "Containerfile").read_text(), re.MULTILINE)
    step = step.replace("/wheels", f"{bundle.folder}/wheels").replace(
        "/requirements.txt", f"{bundle.folder}/requirements.txt"
    )
    step = step.replace("/opt/mpijob-webhook", str(tmp_path / "opt")).replace("python3 ", f"{bundle.python} ")
    loopback = 'ip link set lo up; exec "$@"'
    clean = ["env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", f"HOME={tmp_path}"]
    offline = ["unshare", "--net", *clean, "sh", "-euc", loopback, "sh"]
    done = subprocess.run([*offline, "sh", "-euc", step], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [*tmp_path.glob("opt/lib/python*/site-packages/pip")]
    shown = subprocess.run(
        [*offline, tmp_path / "opt/bin/mpijob-webhook", "demo"], capture_output=True, text=True, check=False
    )
    assert "What to try next:" in shown.stdout, shown.stderr
