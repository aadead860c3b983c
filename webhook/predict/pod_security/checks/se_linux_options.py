"""The SELinux type is one of those for containers, without a user or role of its own.

**Restricted fields:**
- `spec.securityContext.seLinuxOptions.type`
- `spec.containers[*].securityContext.seLinuxOptions.type`

**Allowed values:** unset, empty, `container_t`, `container_init_t`, `container_kvm_t`; from v1.31 `container_engine_t`

**Restricted fields:**
- `spec.securityContext.seLinuxOptions.user`
- `spec.containers[*].securityContext.seLinuxOptions.user`
- `spec.securityContext.seLinuxOptions.role`
- `spec.containers[*].securityContext.seLinuxOptions.role`

**Allowed values:** unset, empty
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import SELinuxOptions
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import plural, quoted, setters

ID = "seLinuxOptions"
TYPES_1_0 = frozenset({"container_t", "container_init_t", "container_kvm_t"})
TYPES_1_31 = TYPES_1_0 | {"container_engine_t"}


def since_1_0(pod: Subject) -> Result | None:
    """With the types of v1.0."""
    return _check(pod, TYPES_1_0)


def since_1_31(pod: Subject) -> Result | None:
    """With container_engine_t."""
    return _check(pod, TYPES_1_31)


def _check(pod: Subject, types: frozenset[str]) -> Result | None:
    given = [(None, "spec.securityContext.seLinuxOptions", pod.security.se_linux_options)] + [
        (place, f"{place.path}.securityContext.seLinuxOptions", place.security.se_linux_options)
        for place in pod.containers
        if place.security.se_linux_options is not None
    ]
    wrong = [(place, path, options, names) for place, path, options in given if (names := _wrong(options, types))]
    if not wrong:
        return None
    all_names = {name for *_, names in wrong for name in names}
    bad_types = sorted({str(options.type) for *_, options, names in wrong if options and "type" in names})
    faults = [f"{plural('type', 'types', bad_types)} {quoted(bad_types)}"] * bool(bad_types)
    faults += [f"{name} may not be set" for name in ("user", "role") if name in all_names]
    places = [place for place, *_ in wrong if place is not None]
    who = setters(len(places) < len(wrong), places)
    return Result(
        ID,
        "seLinuxOptions",
        f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(faults)}",
        tuple(f"{path}.{name}" for _, path, _, names in wrong for name in names),
    )


def _wrong(options: SELinuxOptions | None, types: frozenset[str]) -> list[str]:
    """Which of the fields break the check."""
    if options is None:
        return []
    found = {"type": options.type and options.type not in types, "user": options.user, "role": options.role}
    return [name for name, bad in found.items() if bad]


register(ID, Level.BASELINE, Revision(Version(0), since_1_0), Revision(Version(31), since_1_31))
