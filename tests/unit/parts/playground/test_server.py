"""The server of the playground's page: access on loopback, replies and security headers."""

from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.checking import run
from webhook.parts.playground.server import NotBuilt, Playground

FILES = {
    "index.html": "<title>page</title>",
    "page.js": "",
    "page.css": "",
    "loopback.js": "// by loopback",
    "licences.txt": "MIT",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
async def page(folder: Path) -> AsyncIterator[Playground]:
    served = Playground(folder)
    runner = await served.start()
    yield served
    await runner.cleanup()


async def send(method: str, url: str, **options: Any) -> tuple[int, str, dict[str, str]]:
    async with aiohttp.ClientSession() as session, session.request(method, url, **options) as response:
        return response.status, await response.text(), {k.lower(): v for k, v in response.headers.items()}


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("", "text/html", "<title>"),
        ("page.js", "text/javascript", ""),
        ("page.css", "text/css", ""),
        ("backend.js", "text/javascript", "// by loopback"),
        ("licences.txt", "text/plain", "MIT"),
        ("data.json", "application/json", '"schemas": {'),
    ],
)
async def test_files_of_the_page_are_served_with_security_headers(
    page: Playground, name: str, kind: str, text: str
) -> None:
    status, body, headers = await send("GET", page.url + name)
    assert (status, headers["content-type"].split(";")[0]) == (200, kind)
    assert text in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


async def test_request_to_check_a_job_returns_a_verdict(page: Playground) -> None:
    status, body, _ = await send("POST", f"{page.url}api/check", json={"job": "kind: Pod"})
    assert status == 200
    assert "there is no MPIJob here" in body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
async def test_request_from_a_different_site_is_rejected(
    page: Playground, headers: dict[str, str], status: int
) -> None:
    sent = {"Content-Type": "application/json"} | headers
    actual, body, reply_headers = await send("POST", f"{page.url}api/check", data=b"{}", headers=sent)
    assert (actual, "jobs" in body) == (status, False)
    assert "content-security-policy" in reply_headers


async def test_page_is_on_loopback_and_its_secret_has_128_bits(page: Playground) -> None:
    assert len(urlsafe_b64decode(page.secret + "==")) == 16
    assert page.url.startswith("http://127.0.0.1:")
    with pytest.raises(aiohttp.ClientConnectorError):
        await send("GET", page.url.replace("127.0.0.1", "127.0.0.2"))


async def test_request_with_a_wrong_secret_gives_404(page: Playground) -> None:
    root = page.url.replace(f"{page.secret}/", "")
    for path in ("", "index.html", "api/check", "other/api/check"):
        status, body, _ = await send("POST", root + path, json={})
        assert (status, page.secret in body) == (404, False)


@pytest.mark.parametrize("name", ["nothing.js", "..%2fsecret.txt", "page.css/x"])
async def test_other_files_are_not_served(page: Playground, folder: Path, name: str) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    status, body, _ = await send("GET", page.url + name)
    assert (status, "secret" in body) == (404, False)


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b'{"job":"\xff"}', b"[" * 100_000])
async def test_invalid_request_is_rejected(page: Playground, body: bytes) -> None:
    status, _, _ = await send("POST", f"{page.url}api/check", data=body, headers={"Content-Type": "application/json"})
    assert status == 400


async def test_unknown_charset_is_ignored(page: Playground) -> None:
    sent = {"Content-Type": "application/json; charset=none"}
    status, body, _ = await send("POST", f"{page.url}api/check", data=b'{"job": "kind: Pod"}', headers=sent)
    assert (status, "there is no MPIJob here" in body) == (200, True)


async def test_unbuilt_page_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotBuilt, match="the page is not in"):
        await Playground(tmp_path).start()


async def test_port_in_use_is_reported(page: Playground, folder: Path) -> None:
    with pytest.raises(OSError, match="in use"):
        await Playground(folder, port=page.port).start()


def test_command_explains_how_to_build_a_missing_page(tmp_path: Path) -> None:
    result = run("playground", "--page", str(tmp_path / "none"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: the page is not in {tmp_path / 'none'}: in a checkout, `make page` builds it\n"
