"""Checks of names, keys, paths and ports.

A check returns the problem, such as `must be relative`, or None if the text is valid.
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

label = names.dns_1123_label_problem
subdomain = names.dns_1123_subdomain_problem
label_key = names.label_key_problem
label_value = names.label_value_problem


def variables(texts: Iterable[str]) -> bool:
    """True if the names of all variables are valid in current Kubernetes releases."""
    together = "".join(texts)
    return together.isascii() and together.isprintable() and "=" not in together


def variable(name: str) -> str | None:
    return None if variables((name,)) else 'may have printable ASCII characters only, and no "="'


def port_name(name: str) -> str | None:
    # RFC 6335
    if _PORT_NAME.fullmatch(name):
        return None
    if name.isdecimal():
        return "is text: a number is written without quotes"
    return 'must have at most 15 lower case letters, digits and "-", a letter among them'


def header(name: str) -> str | None:
    return None if _HEADER.fullmatch(name) else 'may have letters, digits and "-" only'


def config_key(key: str) -> str | None:
    if len(key) > names.DNS_SUBDOMAIN_MAX_LENGTH:
        return f"has {len(key)} characters, at most {names.DNS_SUBDOMAIN_MAX_LENGTH} are allowed"
    if not _CONFIG_KEY.fullmatch(key):
        return 'may have letters, digits, "-", "_" and "." only'
    return 'must not be ".", nor start with ".."' if key == "." or key.startswith("..") else None


def sysctl(name: str) -> str | None:
    good = len(name) <= names.DNS_SUBDOMAIN_MAX_LENGTH and _SYSCTL.fullmatch(name)
    return None if good else "is not the name of a kernel parameter, such as net.core.somaxconn"


def search(domain: str) -> str | None:
    name = domain.removesuffix(".")
    if domain == "." or (len(name) <= names.DNS_SUBDOMAIN_MAX_LENGTH and _SEARCH.fullmatch(name)):
        return None
    return "is not a domain"


def address(text: str) -> str | None:
    """Leading zeros are allowed, because older Kubernetes releases accept them."""
    try:
        ip_address(_ZEROS.sub("", text[:100]))
    except ValueError:
        return "is not an IP address"
    return "is not an IP address" if "%" in text else None


def without_steps_back(path: str) -> str | None:
    return 'must not contain ".."' if ".." in path and ".." in path.split("/") else None


def inside(path: str) -> str | None:
    return "must be relative" if path.startswith("/") else without_steps_back(path)


def file_inside(path: str) -> str | None:
    return inside(path) or ('must not start with ".."' if path.startswith("..") else None)


def label_corrected(name: str) -> str:
    return (names.corrected(name, label) if label(name) else None) or name


ProblemOf = Callable[[str], str | None]
SPELLING: Final = "Use lower case letters, digits and -."
LETTERS: Final = "Use letters, digits, -, _ and ."
_SYNTAXES: Final = (label, subdomain, label_key, label_value, port_name, config_key, header)


def note(faults: Faults, path: str, text: str, problem: str, fix: str = SPELLING) -> None:
    """Adds a fault for `text`. The fix is a corrected text if there is one, otherwise `fix`.

    An empty text is skipped, because `reading` reports it.
    """
    if text:
        syntax = next((rule for rule in _SYNTAXES if (violation := rule(text)) and problem.endswith(violation)), None)
        corrected = syntax and names.corrected(text, syntax)
        faults.add(path, f'"{shown(text)}" {problem}', f"Write {corrected}." if corrected else fix)


def check(faults: Faults, path: str, text: str | None, problem_of: ProblemOf, fix: str = SPELLING) -> None:
    if text and (problem := problem_of(text)):
        note(faults, path, text, problem, fix)


def check_each(
    faults: Faults, path: str, texts: Sequence[str] | None, problem_of: ProblemOf, fix: str = SPELLING
) -> None:
    for index, text in enumerate(texts or ()):
        check(faults, f"{path}[{index}]", text, problem_of, fix)
