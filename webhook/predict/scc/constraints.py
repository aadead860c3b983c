"""The order in which OpenShift tries SCCs, and the values that SCCs get from a namespace."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from webhook.cluster.resources.namespaces import UID_RANGE
from webhook.cluster.resources.sccs import (
    FIXED,
    NOT_ROOT,
    RANGE,
    IdRange,
    SecurityContextConstraints,
    SELinuxLabel,
)

GROUPS: Final = "openshift.io/sa.scc.supplemental-groups"
LEVEL: Final = "openshift.io/sa.scc.mcs"
_BLOCK: Final = re.compile(r"(\d{1,10})([/-])(\d{1,10})")
# openshift/apiserver-library-go `securitycontextconstraints/util/sort/byrestrictions.go`
_STRATEGIES: Final = {"RunAsAny": 40_000, NOT_ROOT: 30_000, RANGE: 20_000, FIXED: 10_000}
_TRIVIAL_VOLUMES: Final = frozenset(("secret", "configMap", "emptyDir", "downwardAPI", "projected", "none"))


class Ranges(msgspec.Struct, frozen=True):
    """The user and group ids and the SELinux level that OpenShift has reserved for a namespace."""

    uids: IdRange
    groups: tuple[IdRange, ...]
    level: str


def ranges(annotations: Mapping[str, str]) -> Ranges | None:
    """None if an annotation is missing or invalid; OpenShift then admits no pod."""
    uids = _block(annotations.get(UID_RANGE, ""))
    groups = [_block(block) for block in annotations.get(GROUPS, annotations.get(UID_RANGE, "")).split(",")]
    level = annotations.get(LEVEL, "")
    if uids is None or not level or None in groups:
        return None
    return Ranges(uids, tuple(group for group in groups if group is not None), level)


def _block(text: str) -> IdRange | None:
    """Parses `START/SIZE` or `START-END`; None for other texts. The end is inclusive."""
    if (match := _BLOCK.match(text)) is None:
        return None
    start, number = int(match[1]), int(match[3])
    return IdRange(start, start + number - 1 if match[2] == "/" else number)


def in_namespace(scc: SecurityContextConstraints, reserved: Ranges) -> SecurityContextConstraints:
    """The SCC, with the namespace's ranges where the SCC has none."""
    users, label = scc.run_as_user, scc.se_linux_context
    if users.type == RANGE and users.uid_range_min is None and users.uid_range_max is None:
        users = replace(users, uid_range_min=reserved.uids.min, uid_range_max=reserved.uids.max)
    if label.type == FIXED and not (label.options and label.options.level):
        label = replace(label, options=replace(label.options or SELinuxLabel(), level=reserved.level))
    fs_group, groups = scc.fs_group, scc.supplemental_groups
    if not fs_group.ranges:
        first = reserved.groups[0].min
        fs_group = replace(fs_group, ranges=(IdRange(first, first),))
    if not groups.ranges:
        groups = replace(groups, ranges=reserved.groups)
    return replace(scc, run_as_user=users, se_linux_context=label, fs_group=fs_group, supplemental_groups=groups)


def in_order(constraints: Iterable[SecurityContextConstraints]) -> list[SecurityContextConstraints]:
    """The highest priority first, then the fewest permissions, then by name."""
    return sorted(constraints, key=lambda scc: (-(scc.priority or 0), permissiveness(scc), scc.name))


def permissiveness(scc: SecurityContextConstraints) -> int:
    """OpenShift's score of an SCC. An SCC with a higher score allows more."""
    points = 1_600_000 * scc.allow_privileged_container
    points += 800_000 * scc.allow_host_ports + 400_000 * scc.allow_host_network
    volumes = {*(scc.volumes or ())}
    if volumes & {"hostPath", "*"}:
        points += 200_000
    elif volumes - _TRIVIAL_VOLUMES:
        points += 100_000
    points += _STRATEGIES.get(scc.se_linux_context.type, 0) + _STRATEGIES.get(scc.run_as_user.type, 0)
    allowed = [capability.upper() for capability in scc.allowed_capabilities or ()]
    dropped = [capability.upper() for capability in scc.required_drop_capabilities or ()]
    capabilities = 5_000 + 300 * len(scc.default_add_capabilities or ())
    capabilities += 4_000 if {"*", "ALL"} & {*allowed} else 10 * len(allowed)
    capabilities -= 3_000 if "ALL" in dropped else 50 * len(dropped)
    return points + min(max(capabilities, 0), 9_999)
