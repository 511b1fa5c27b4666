"""``paceline serve``: decisions over HTTP, and a page to look at."""

import argparse
from pathlib import Path

from paceline.errors import InvalidValue

SUMMARY = "serve the bandits of a store over HTTP, with a page to look at"
DESCRIPTION = """\
Serve the bandits of a store over HTTP. Any number of these processes may share a store, and with it the budgets.

  paceline serve --store sqlite:///ads.db
  paceline token add --store postgresql://db/ads --label shop --role decider
  paceline serve --store postgresql://db/ads --host 0.0.0.0

As long as the store has no token and none is given, it listens on this machine only, and nobody needs one. SIGTERM and
Ctrl-C let requests finish and hand back what this process holds of the budgets.
"""
VARIABLE = "PACELINE_TOKEN"
LARGEST_FILE = 4096  # bytes of a file with a token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument(
        "--store", required=True, metavar="URL", help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen at, 0 for any (default: 8080)")
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--token",
        metavar="TOKEN",
        help=f"a token for an operator, besides those in the store; others on this machine can see it, so rather set "
        f"{VARIABLE} or use --token-file",
    )
    given.add_argument("--token-file", type=Path, metavar="FILE", help="a file with that token")
    parser.add_argument("--worker", metavar="NAME", help="name of this process in the fleet (default: a new one)")
    parser.add_argument(
        "--journal-dir", type=Path, metavar="DIR", help="folder for journals: a crash strands no money; needs --worker"
    )


def run(options: argparse.Namespace) -> None:
    """Serve until the end."""
    import logging

    from paceline import checks
    from paceline.fleet.store import open_store
    from paceline.service.server import serve, without_password

    checks.whole("--port", options.port, 0, 65535)
    if options.journal_dir is not None:
        if options.worker is None:
            raise InvalidValue("--worker must be given with --journal-dir, so that the next start is the same worker")
        options.journal_dir.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    token = token_of(options)
    shown = without_password(options.store)
    serve(
        open_store(options.store),
        host=options.host,
        port=options.port,
        token=token,
        worker=options.worker,
        journal_dir=options.journal_dir,
        ready=lambda address: print(f"paceline serves {shown}; the page is at {address}", flush=True),
    )
    print("paceline has stopped", flush=True)


def token_of(options: argparse.Namespace) -> str | None:
    """The token from the command line, a file or the environment."""
    import os

    if options.token_file is not None:
        return read_token(options.token_file)
    given: str | None = options.token
    return given if given is not None else os.environ.get(VARIABLE)


def read_token(path: Path) -> str:
    """The token in a file: a short one, and not a pipe, which might never end or never begin."""
    import os
    import stat

    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidValue(f"--token-file must be a plain file, got a pipe or a device: {path}")
        content = file.read(LARGEST_FILE + 1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValue(f"--token-file must be a file with a token, got no text: {path}") from None
    if len(content) > LARGEST_FILE:
        raise InvalidValue(f"--token-file must have a token and no more, got above {LARGEST_FILE} bytes: {path}")
    return text.strip()
