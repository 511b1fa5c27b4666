"""The command line. Each command has a file of its own, which loads what it needs only when it runs."""

import argparse
import io
import os
import sys
from importlib import import_module

from paceline import __version__
from paceline.errors import PacelineError
from paceline.extras import check_installed

# Every command, and the extra that it cannot do without: that is looked for before it begins, not found missing after a
# minute of work.
COMMANDS = {
    "reproduce": "lab",
    "compare": "lab",
    "prior-work": "lab",
    "run": "lab",
    "report": "lab",
    "diff": "lab",
    "replay": "",
    "solve": "",
    "policies": "",
    "compile": "",
    "log": "",
    "fleet": "",
    "serve": "serve",
    "token": "serve",
    "demo": "serve",
}


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands and their options, or the options of one command only."""
    top = argparse.ArgumentParser(
        prog="paceline",
        description="Bandits with anytime knapsacks: choose among options of unknown reward and cost, "
        "never above the budget line.",
    )
    top.add_argument("--version", action="version", version=f"paceline {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        command = import_module(f"{__name__}.{name.replace('-', '_')}")
        sub = commands.add_parser(
            name,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if only in {None, name}:
            command.add_arguments(sub)
        sub.set_defaults(command=name, run=command.run)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; wrong input is one line on standard error and exit code 2. A command may return a code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Greek letters gets a question mark, not a crash
    try:
        try:
            given = sys.argv[1:] if arguments is None else arguments
            top = parser(given[0] if given and given[0] in COMMANDS else None)
            options = top.parse_args(given)
            if "run" not in options:
                top.print_help()
                return 0
            if COMMANDS[options.command]:
                check_installed(COMMANDS[options.command], f"paceline {options.command}")
            code: int | None = options.run(options)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (PacelineError, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
        print(f"paceline: error: {what}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paceline: interrupted", file=sys.stderr)
        return 130
    return code or 0
