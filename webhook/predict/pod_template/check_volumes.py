"""Volumes: names, one source each, and what is inside the sources."""

from typing import Final

from msgspec.structs import astuple

from webhook.api import quantity
from webhook.api.quantity import QuantityError
from webhook.predict.pod_template import texts
from webhook.predict.pod_template.check_claims import check_claim
from webhook.predict.pod_template.check_files import check_downward, check_items
from webhook.predict.pod_template.fault import MANY, Faults, Kind, shown
from webhook.predict.pod_template.volumes import SOURCES, Csi, ProjectedSource, Volume

# Of the sources of a volume at least so many are not there.
_OTHERS: Final = len(SOURCES) - 1
_LONGEST_DRIVER: Final = 63
_MEBIBYTE: Final = 2**20 * quantity.NANO


def check_volumes(volumes: list[Volume], path: str, found: Faults) -> set[str]:
    """Every volume; their names."""
    used: set[str] = set()
    for index, volume in enumerate(volumes):
        if problem := texts.label(volume.name):
            texts.note(found, f"{path}[{index}].name", volume.name, problem, "Rename the volume.")
        elif volume.name in used:
            found.add(f"{path}[{index}].name", f'there is another volume "{volume.name}"', "Rename the volume.")
        used.add(volume.name)
        if astuple(volume).count(None) < _OTHERS:
            names = [name for attribute, name in SOURCES if getattr(volume, attribute) is not None]
            fault = f"has both {names[0]} and {names[1]}, and a volume has one source"
            found.add(f"{path}[{index}]", fault, "Make two volumes of it, or remove one of them.", Kind.FORBIDDEN)
        elif volume.persistent_volume_claim is None:
            _source(volume, f"{path}[{index}]", found)
    return used


def _source(volume: Volume, path: str, found: Faults) -> None:
    """What is inside, as far as its type does not hold it."""
    if volume.config_map is not None:
        check_items(volume.config_map.items, f"{path}.configMap", found)
    elif volume.empty_dir is not None:
        if (medium := volume.empty_dir.medium) and medium != "Memory" and not medium.startswith("HugePages"):
            fault = f'"{shown(medium)}" is known to no node, so the pods never start'
            found.add(f"{path}.emptyDir.medium", fault, "Write Memory, or remove it.", advisory=True)
        _size_limit(volume.empty_dir.size_limit, f"{path}.emptyDir.sizeLimit", found)
    elif volume.secret is not None:
        check_items(volume.secret.items, f"{path}.secret", found)
    elif volume.host_path is not None:
        if problem := texts.without_steps_back(volume.host_path.path):
            texts.note(found, f"{path}.hostPath.path", volume.host_path.path, problem, "Correct the path.")
    else:
        _seldom(volume, path, found)


def _seldom(volume: Volume, path: str, found: Faults) -> None:
    if volume.downward_api is not None:
        check_downward(volume.downward_api.items, f"{path}.downwardAPI", found)
    elif volume.projected is not None:
        _projected(volume.projected, f"{path}.projected", found)
    elif volume.nfs is not None:
        if not volume.nfs.path.startswith("/"):
            texts.note(found, f"{path}.nfs.path", volume.nfs.path, "must start with /", "Correct the path.")
    elif volume.csi is not None:
        _csi(volume.csi, f"{path}.csi", found)
    elif volume.ephemeral is not None:
        check_claim(volume.ephemeral.volume_claim_template, f"{path}.ephemeral.volumeClaimTemplate", found)


def _projected(source: ProjectedSource, path: str, found: Faults) -> None:
    files: set[str] = set()
    for index, one in enumerate((source.sources or ())[:MANY]):
        where = f"{path}.sources[{index}]"
        if one.secret is not None:
            check_items(one.secret.items, f"{where}.secret", found, files)
        if one.config_map is not None:
            check_items(one.config_map.items, f"{where}.configMap", found, files)
        if one.downward_api is not None:
            check_downward(one.downward_api.items, f"{where}.downwardAPI", found, files)
        token = one.service_account_token
        if token is not None and (problem := texts.file_inside(token.path)):
            fix = "Name a path inside the volume."
            texts.note(found, f"{where}.serviceAccountToken.path", token.path, problem, fix)
        if sum(each is not None for each in (one.secret, one.config_map, one.downward_api, token)) > 1:
            fix = "Make an item of each source."
            found.add(where, "has several sources, and an item has one", fix, Kind.FORBIDDEN)


def _size_limit(written: object, path: str, found: Faults) -> None:
    if written is None:
        return
    try:
        amount = quantity.parse(written)
    except QuantityError:
        return
    if 0 < amount < _MEBIBYTE:
        found.add(path, f"means {quantity.whole(amount)} bytes", "Write the unit, such as 8Gi.", advisory=True)


def _csi(source: Csi, path: str, found: Faults) -> None:
    driver = source.driver
    if len(driver) > _LONGEST_DRIVER:
        fault = f"has {len(driver)} characters, at most {_LONGEST_DRIVER} are allowed"
        found.add(f"{path}.driver", fault, "Correct the name.")
    elif problem := texts.subdomain(driver.lower()):
        texts.note(found, f"{path}.driver", driver, problem, "Correct the name.")
    if (secret := source.node_publish_secret_ref) is not None:
        where = f"{path}.nodePublishSecretRef.name"
        if not secret.name:
            found.add(where, "is missing", "Set it.", Kind.REQUIRED)
        elif problem := texts.subdomain(secret.name):
            texts.note(found, where, secret.name, problem, "Correct the name.")
