"""Checks of texts: names, keys, paths, ports. Each returns the fault as a predicate, or None.

The syntax of names is in `webhook.api.names`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Final

from webhook.api import names
from webhook.predict.pod_template.fault import Faults, shown

_PORT_NAME: Final = re.compile(r"(?=.{1,15}\Z)(?=.*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_SYSCTL: Final = re.compile(r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:[./][a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*")
_SEARCH: Final = re.compile(r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:\._?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*")
_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")


# Names of containers, volumes and claims; of most objects; keys of labels, and other qualified names; values of labels.
label, subdomain = names.dns_1123_label_problem, names.dns_1123_subdomain_problem
label_key, label_value = names.label_key_problem, names.label_value_problem


def variables(texts: Iterable[str]) -> bool:
    together = "".join(texts)
    return together.isascii() and together.isprintable() and "=" not in together


def variable(name: str) -> str | None:
    """The name of an environment variable, as current releases accept it."""
    if variables((name,)):
        return None
    return 'may have printable ASCII characters only, and no "="'


def port_name(name: str) -> str | None:
    """The name of a port (RFC 6335)."""
    if _PORT_NAME.fullmatch(name):
        return None
    if name.isdecimal():
        return "is text: a number is written without quotes"
    return 'must have at most 15 lower case letters, digits and "-", a letter among them'


def header(name: str) -> str | None:
    return None if _HEADER.fullmatch(name) else 'may have letters, digits and "-" only'


def config_key(key: str) -> str | None:
    """A key of a ConfigMap or Secret."""
    if len(key) > names.DNS_SUBDOMAIN_MAX_LENGTH:
        return f"has {len(key)} characters, at most {names.DNS_SUBDOMAIN_MAX_LENGTH} are allowed"
    if not _CONFIG_KEY.fullmatch(key):
        return 'may have letters, digits, "-", "_" and "." only'
    return 'must not be ".", nor start with ".."' if key == "." or key.startswith("..") else None


def sysctl(name: str) -> str | None:
    good = len(name) <= names.DNS_SUBDOMAIN_MAX_LENGTH and _SYSCTL.fullmatch(name)
    return None if good else "is not the name of a kernel parameter, such as net.core.somaxconn"


def search(domain: str) -> str | None:
    """A search domain of the resolver."""
    name = domain.removesuffix(".")
    if domain == "." or (len(name) <= names.DNS_SUBDOMAIN_MAX_LENGTH and _SEARCH.fullmatch(name)):
        return None
    return "is not a domain"


def address(text: str) -> str | None:
    """An IP address; older releases accept leading zeros."""
    try:
        ip_address(_ZEROS.sub("", text[:100]))
    except ValueError:
        return "is not an IP address"
    return "is not an IP address" if "%" in text else None


def without_steps_back(path: str) -> str | None:
    """A path without ".."."""
    return 'must not contain ".."' if ".." in path and ".." in path.split("/") else None


def inside(path: str) -> str | None:
    """A path below another one."""
    return "must be relative" if path.startswith("/") else without_steps_back(path)


def file_inside(path: str) -> str | None:
    """A file in a volume."""
    return inside(path) or ('must not start with ".."' if path.startswith("..") else None)


SPELLING: Final = "Use lower case letters, digits and -."
LETTERS: Final = "Use letters, digits, -, _ and ."
_SYNTAXES: Final = (label, subdomain, label_key, label_value, port_name, config_key, header)


def note(found: Faults, path: str, text: str, problem: str, fix: str = SPELLING) -> None:
    """Add the fault of a text; an empty one is reported when it is read."""
    if text:
        syntax = next((each for each in _SYNTAXES if (known := each(text)) and problem.endswith(known)), None)
        meant = syntax and names.corrected(text, syntax)
        found.add(path, f'"{shown(text)}" {problem}', f"Write {meant}." if meant else fix)


def check(
    found: Faults, path: str, text: str | None, problem_of: Callable[[str], str | None], fix: str = SPELLING
) -> None:
    """Add the fault of the text at `path`; a missing one is not a fault here."""
    if text and (problem := problem_of(text)):
        note(found, path, text, problem, fix)


def check_each(
    found: Faults,
    path: str,
    all_texts: Sequence[str] | None,
    problem_of: Callable[[str], str | None],
    fix: str = SPELLING,
) -> None:
    for index, text in enumerate(all_texts or ()):
        check(found, f"{path}[{index}]", text, problem_of, fix)
