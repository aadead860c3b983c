"""`url('https://host:80/path?a=b')` and its functions, like Go's `url.ParseRequestURI`.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/urls.go
"""

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from webhook.cel.library.declared import BOOL, LISTS_BY_KEY, STRING, Declared, Function, Method, Text, parses

_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_BAD_IN_HOST: Final = re.compile(r"[ \"<>\\^`{|}%/?#@]")
_BAD_IN_USER: Final = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
_VALID_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@\[\]/]|%[0-9a-fA-F]{2})*")


class Url(Text):
    type = "kubernetes.URL"


class _Parts(NamedTuple):
    scheme: str
    host: str
    path: str
    query: str

    @property
    def port(self) -> str:
        _, colon, port = self.host.rpartition(":")
        return port if colon and port.isdecimal() else ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        name = self.host.removesuffix(f":{self.port}") if self.port else self.host.removesuffix(":")
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _split(text: str) -> _Parts:
    if _CONTROL.search(text):
        raise ValueError(f"URL parse error: invalid control character in {text!r}")
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    rest, _, query = rest.partition("?")
    host = ""
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError(f"URL parse error: invalid URI for request: {text!r}")
        return _Parts(scheme[0][:-1].lower(), "", "", query)  # the rest is opaque
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(authority, text), slash + path
    if _BAD_ESCAPE.search(rest):
        raise ValueError(f"URL parse error: invalid URL escape in {text!r}")
    return _Parts(scheme[0][:-1].lower() if scheme else "", host, rest, query)


def _host(authority: str, text: str) -> str:
    user, at, host = authority.rpartition("@")
    bracket = host.rfind("]")
    port = host[bracket + 1 :] if host.startswith("[") else host[host.find(":") :] if ":" in host else ""
    bad = (
        (at and (_BAD_IN_USER.search(user) or _BAD_ESCAPE.search(user)))
        or (host.startswith("[") and bracket < 0)
        or not _PORT.fullmatch(port)
        or _BAD_IN_HOST.search(host.removesuffix(port))
    )
    if bad:
        raise ValueError(f"URL parse error: invalid host in {text!r}")
    return host


def _url(text: str) -> Url:
    _split(text)
    return Url(text)


def _escaped_path(url: Url) -> str:
    path = _split(url.text).path
    return path if _VALID_PATH.fullmatch(path) else quote(unquote(path), safe="/!$&'()*+,;=:@[]~")


def _query(url: Url) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for part in _split(url.text).query.split("&"):
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            key, _, value = part.partition("=")
            values.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return values


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Function("url", [STRING], Url, _url),
    Function("isURL", [STRING], BOOL, parses(_split)),
    Method("getScheme", [Url], STRING, lambda url: _split(url.text).scheme),
    Method("getHost", [Url], STRING, lambda url: _split(url.text).host),
    Method("getHostname", [Url], STRING, lambda url: _split(url.text).hostname),
    Method("getPort", [Url], STRING, lambda url: _split(url.text).port),
    Method("getEscapedPath", [Url], STRING, _escaped_path),
    Method("getQuery", [Url], LISTS_BY_KEY, _query),
)
