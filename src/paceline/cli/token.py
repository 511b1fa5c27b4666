"""``paceline token``: who may call the service."""

import argparse

from paceline.errors import InvalidValue, UnknownName

SUMMARY = "add, list and revoke the tokens of a store"
DESCRIPTION = """\
Tokens for `paceline serve`. A new token is shown once; the store keeps a digest of it.

  paceline token add --store sqlite:///ads.db --label shop --role decider
  paceline token list --store sqlite:///ads.db
  paceline token revoke --store sqlite:///ads.db --label shop

A reader may look, a decider may also ask and tell, and an operator may do everything.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("action", choices=("add", "list", "revoke"), help="what to do")
    parser.add_argument("--store", required=True, metavar="URL", help="as for `paceline serve`")
    parser.add_argument("--label", help="name of the token")
    parser.add_argument("--role", choices=("reader", "decider", "operator"), help="what it may do (for add)")


def run(options: argparse.Namespace) -> None:
    """Do it."""
    from datetime import UTC, datetime

    from paceline.fleet.store import open_store
    from paceline.service.tokens import add_token

    for name in {"add": ("label", "role"), "revoke": ("label",), "list": ()}[options.action]:
        if getattr(options, name) is None:
            raise InvalidValue(f"--{name} must be given to {options.action} a token, got none")
    store = open_store(options.store)
    try:
        if options.action == "add":
            print(add_token(store, options.label, options.role))
        elif options.action == "revoke":
            if not store.revoke_token(options.label):
                raise UnknownName(f"--label must be that of a token of the store, got {options.label!r}")
            print(f"Revoked: {options.label}")
        else:
            for token in store.tokens():
                made = datetime.fromtimestamp(token.made, UTC).strftime("%Y-%m-%d %H:%M")
                print(f"{token.label:30} {token.role:10} {made}")
    finally:
        store.close()
