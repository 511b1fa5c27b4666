"""The files of the page: read once, sent from memory, and named in full, so that no path leads anywhere else."""

import hashlib
from importlib import resources
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"


class Asset(NamedTuple):
    """One file."""

    content: bytes
    media_type: str
    etag: str


def read_assets() -> dict[str, Asset]:
    """All files of the page, by name."""
    found = {}
    for file in resources.files("paceline.service").joinpath("page").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if ending in TYPES:
            content = file.read_bytes()
            found[file.name] = Asset(content, TYPES[ending], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def send(asset: Asset, request: Request) -> Response:
    """A file, unless the browser has it."""
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, 200, headers, asset.media_type)
