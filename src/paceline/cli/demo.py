"""``paceline demo``: a service with a campaign that runs by itself."""

import argparse

SUMMARY = "start a service with a made-up campaign, and a page to look at"
DESCRIPTION = """\
Start a service with an embedded store and a made-up campaign: five advertisements, a budget of 1.2 cents a visitor, and
clicks that come seconds later. The page shows it as it happens; pause an arm, credit money, change the budget.

  paceline demo

Ctrl-C ends it, and leaves nothing behind.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("--port", type=int, default=0, help="port to listen at (default: any that is free)")
    parser.add_argument("--speed", type=float, default=1.0, help="how fast visitors come (default: 1, forty a second)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(options: argparse.Namespace) -> None:
    """Serve, and play."""
    import logging
    import signal
    import sys
    import webbrowser
    from contextlib import ExitStack
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from paceline import checks
    from paceline.fleet.store import open_store
    from paceline.interrupts import signals_held
    from paceline.meanwhile import call_off
    from paceline.service.demo import NAME, SETTINGS, Campaign
    from paceline.service.server import ends, serve

    checks.whole("--port", options.port, 0, 65535)
    checks.real("--speed", options.speed, 0, 100, above_low=True)
    logging.basicConfig(level=logging.ERROR, format="%(message)s")  # that visitors are cut off at the end is no news
    for number in ends():  # before there is a service that heeds them: whatever ends this, the folder goes
        if number != signal.SIGINT:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    with ExitStack() as stack:
        stack.callback(call_off)
        with signals_held():  # a folder that is made, and not known yet, would stay
            folder = stack.enter_context(TemporaryDirectory(prefix="paceline-demo-"))
        store = open_store(f"sqlite:///{Path(folder) / 'demo.db'}")
        store.make(NAME, SETTINGS, "demo")

        def begin(address: str) -> None:
            print(f"A campaign runs by itself; look at it here: {address}\nCtrl-C ends it.", flush=True)
            campaign = Campaign(address, speed=options.speed)
            campaign.start()
            stack.callback(campaign.end)
            if not options.no_browser and sys.stdout.isatty():
                webbrowser.open(address)

        serve(store, port=options.port, worker="demo", ready=begin)
    print("The demonstration is over; nothing is left of it.")
