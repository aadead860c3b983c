"""A server that gives every review the same reply: `python -m tests.bench.replayed ADDRESS CERT KEY REPLY`.

With a patch of ours as the reply it shows what the API server itself needs to take one: to apply it, and to decode,
default and prune the object once more.
"""

import ssl
import sys
from pathlib import Path

import msgspec
from aiohttp import web


class Response(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The part of an AdmissionReview's response that the hooks fill in."""

    uid: str
    allowed: bool
    patch: str = ""
    patch_type: str = ""


class Request(msgspec.Struct):
    """What has to come back of a request."""

    uid: str


class Review(msgspec.Struct, omit_defaults=True, rename="camel"):
    """An AdmissionReview."""

    api_version: str
    kind: str
    request: Request | None = None
    response: Response | None = None


def application(reply: bytes) -> web.Application:
    """Answers POSTs with `reply`, an AdmissionReview with a response."""
    decoder = msgspec.json.Decoder(Review)
    answer = decoder.decode(reply)

    async def replay(request: web.Request) -> web.Response:
        asked = decoder.decode(await request.read()).request
        if asked is None or answer.response is None:
            raise web.HTTPBadRequest
        answer.response.uid = asked.uid
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    made = web.Application(client_max_size=7 << 20)
    made.router.add_post("/", replay)
    return made


def main() -> None:
    """Serve until the end."""
    address, certificate, key, reply = sys.argv[1:]
    host, port = address.split(":")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    served = application(Path(reply).read_bytes())
    web.run_app(served, host=host, port=int(port), ssl_context=context, print=None, access_log=None)


if __name__ == "__main__":
    main()
