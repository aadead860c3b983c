"""The API server's checks of a container's requests and limits.

Other rules report the remaining faults: `upstream-contract` reports invalid and negative quantities, `gpus` reports
faults of accelerators, and `limit-range` reports requests whose limit is a default.
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
(`validateResourceRequirements`)
"""

from collections.abc import Container, Mapping
from typing import Final

from webhook.api import names, quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator, misspelt_accelerator
from webhook.api.pod_resources import HUGE_PAGES, is_overcommitted
from webhook.api.quantity import Quantity, QuantityError
from webhook.predict.pod_template import model
from webhook.predict.pod_template.fault import Faults, Kind, shown

_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_MEBIBYTE: Final = 2**20 * quantity.NANO
_ACCELERATORS: Final = frozenset(name for name in DEFAULT_ACCELERATORS if "*" not in name)
_MAX_CORES: Final = 1920 * quantity.NANO  # the number of cores of the largest cloud machines
_MILLI: Final = quantity.NANO // 1000
_LONGEST: Final = 253 + 1 + 63
MEANT_RESOURCES: Final = {
    **dict.fromkeys(("gpu", "gpus", "nvidia-gpu"), "nvidia.com/gpu"),
    **dict.fromkeys(("mem", "mem-limit", "mem_limit", "ram"), "memory"),
    "cpus": "cpu",
    "hugepages": "hugepages-2Mi",
}
"""Names that users write by mistake, each with Kubernetes' name of the resource."""


def check_resources(resources: model.Resources, path: str, faults: Faults, *, without_ranges: bool | None) -> None:
    """`without_ranges` is True if no LimitRange sets default resources; None if this is unknown."""
    limits, requests = resources.limits or {}, resources.requests or {}
    earlier = len(faults)
    most = _amounts(limits, f"{path}.limits", faults)
    if requests != limits or len(faults) > earlier:
        least = _amounts(requests, f"{path}.requests", faults)
        _compare(most, least, limits, path, faults, without_ranges=without_ranges)
    if without_ranges is not False and "cpu" not in limits and "memory" not in limits:
        _huge_pages_alone(limits, requests, path, faults, advisory=without_ranges is None)


def _compare(
    most: Mapping[str, Quantity],
    least: Mapping[str, Quantity],
    limits: Mapping[str, model.Amount],
    path: str,
    faults: Faults,
    *,
    without_ranges: bool | None,
) -> None:
    for name, amount in least.items():
        if (limit := most.get(name)) is not None:
            if amount != limit and (amount > limit or not is_overcommitted(name)):
                _differs(name, amount, limit, path, faults)
        elif not (name in limits or is_overcommitted(name) or without_ranges is False or misspelt_accelerator(name)):
            fault = f"is missing, but the request is {quantity.format(amount)}"
            fix = f"Set it to {quantity.format(amount)}."
            # LimitRanges rarely set defaults for extended resources.
            advisory = without_ranges is None and name.startswith(HUGE_PAGES)
            faults.add(f"{path}.limits[{name}]", fault, fix, Kind.REQUIRED, advisory=advisory)


def _amounts(written: Mapping[str, object], path: str, faults: Faults) -> dict[str, Quantity]:
    """Returns the valid amounts except those of accelerators, and adds the faults of names and amounts."""
    amounts = {}
    for name, value in written.items():
        if name not in _STANDARD:
            if name in _ACCELERATORS:
                continue
            if problem := _name_problem(name):
                faults.add(f"{path}[{shown(name)}]", problem, _fix_of_name(name, written), Kind.NOT_SUPPORTED)
                continue
            if is_accelerator(name, DEFAULT_ACCELERATORS):
                continue
        try:
            amount = quantity.parse(0 if value is None else value)
        except QuantityError:
            continue
        if amount < 0:
            continue
        amounts[name] = amount
        if name in _BYTES:
            if 0 < amount < _MEBIBYTE:
                _in_bytes(f"{path}[{name}]", amount, str(value), faults)
        elif name != "cpu":
            _whole(name, amount, f"{path}[{name}]", faults)
        elif amount > _MAX_CORES:
            number = str(value).rstrip("EGKMPTik")
            meant = f"{number}m" if quantity.parse(number) >= 100 * quantity.NANO else number  # m means thousandths
            faults.add(f"{path}[{name}]", f"means {quantity.format(amount)} cores", f'Write "{meant}".', advisory=True)
    return amounts


def _in_bytes(path: str, amount: Quantity, written: str, faults: Faults) -> None:
    if not quantity.is_whole(amount):
        milli = -(-amount // _MILLI)
        meant = milli if written.endswith("m") else round(milli * 1.024)  # 1.5 without a unit probably means 1.5Gi
        faults.add(path, f"{milli}m means thousandths of a byte", f'Write "{meant}Mi".', advisory=True)
        return
    number = quantity.whole(amount)
    fix = f'Write "{number}Gi", or "{number}Mi".' if number <= 1024 else f'Write "{number}Mi".'  # Slurm counts in MB
    faults.add(path, f"means {number} byte{'' if number == 1 else 's'}", fix, advisory=True)


def _whole(name: str, amount: Quantity, path: str, faults: Faults) -> None:
    if name.startswith(HUGE_PAGES):
        size = page_size(name)
        if size is None:
            faults.add(path, "does not name a page size", "Name it, as hugepages-2Mi.")
        elif quantity.whole(amount) % size:
            page = name.removeprefix(HUGE_PAGES)
            fault = f"{quantity.format(amount)} is not a multiple of the page size {page}"
            faults.add(path, fault, f"Set it to a multiple of {page}.")
    elif "kubernetes.io/" not in name and -(-amount // _MILLI) % 1000:
        faults.add(path, f"{quantity.format(amount)} is not whole", f"Set it to {quantity.whole(amount)}.")


def _differs(name: str, amount: Quantity, limit: Quantity, path: str, faults: Faults) -> None:
    least, most = quantity.format(amount), quantity.format(limit)
    if is_overcommitted(name):
        fault, fix = f"{least} is above the limit of {most}", f"Set it to {most} or less, or raise the limit."
    else:
        fault, fix = f"{least} differs from the limit of {most}", f"Set it to {most}, or remove it: the limit applies."
    faults.add(f"{path}.requests[{name}]", fault, fix)


def _huge_pages_alone(
    limits: Mapping[str, object], requests: Mapping[str, object], path: str, faults: Faults, *, advisory: bool
) -> None:
    if "cpu" in requests or "memory" in requests:
        return
    for field, amounts in (("limits", limits), ("requests", requests)):
        if name := next((name for name in amounts if name.startswith(HUGE_PAGES)), None):
            fault, fix = "also needs cpu or memory", "Set memory and cpu too."
            faults.add(f"{path}.{field}[{shown(name)}]", fault, fix, Kind.FORBIDDEN, advisory=advisory)
            return


def page_size(name: str) -> int | None:
    """The bytes of a page, from the resource's name; None if the name contains no size."""
    try:
        size = quantity.parse(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return None
    return size // quantity.NANO if size > 0 and quantity.is_whole(size) else None


def _name_problem(name: str) -> str | None:
    if len(name) > _LONGEST:
        return f"is too long for the name of a resource: {len(name)} characters"
    if problem := names.label_key_problem(name):
        return f'"{name}" {problem}'
    if "/" not in name:
        return None if name.startswith(HUGE_PAGES) else f'there is no resource "{name}"'
    if "kubernetes.io/" in name:
        return None
    # A quota names the resource with the prefix `requests.`, and the name with the prefix must be valid too.
    if name.startswith("requests.") or names.label_key_problem(f"requests.{name}"):
        return f'"{shown(name)}" is not the name of an extended resource'
    return None


def _fix_of_name(name: str, written: Container[str]) -> str:
    lower = name.lower().replace("_", "-")
    near = misspelt_accelerator(name) or names.closest_name(lower, (*_STANDARD, *_ACCELERATORS))
    if corrected := MEANT_RESOURCES.get(lower, near):
        if corrected in written:
            return "Remove it."
        hint = ", or the name that your GPUs have" if corrected == "nvidia.com/gpu" else ""
        return f"Rename it to {corrected}{hint}."
    return "Use cpu, memory, ephemeral-storage, hugepages-2Mi, or a name with its domain, such as nvidia.com/gpu."
