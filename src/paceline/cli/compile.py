"""``paceline compile``: machine code for this machine, ahead of time."""

import argparse
import sys

SUMMARY = "compile policies ahead of time, for an image or before a deadline"
DESCRIPTION = """\
Compile policies for this machine and keep the code on disk, on all cores: for simulation, for live use and for replay.
Without this command each is compiled when it is first used, a second or two at a time. Put it in the recipe of an
image, and the first decision of a container need not wait:

  RUN pip install paceline && paceline compile thompson

Code of earlier versions is removed. It is kept where numba keeps it: in NUMBA_CACHE_DIR if that is set, else beside the
sources if they can be written to, else in the user's cache folder.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="policies by name (default: all)")
    parser.add_argument(
        "--resources", type=int, nargs="+", default=[1], metavar="D", help="for so many resources (default: 1)"
    )


def run(options: argparse.Namespace) -> None:
    """Compile, clear up, say what was done."""
    from paceline import checks
    from paceline.compile import compile_ahead, remove_old_code
    from paceline.policies import POLICIES, make_policy

    chosen = [make_policy(name) for name in dict.fromkeys(options.policies or POLICIES)]
    counts = [checks.whole("resources", count, 1, 64) for count in options.resources]
    compiled = compile_ahead(chosen, say=on_screen, resources=counts)
    removed = remove_old_code(chosen)
    print(f"{compiled} functions compiled, {removed} files of earlier versions removed")


def on_screen(message: str) -> None:
    """For those who wait."""
    print(message, file=sys.stderr)
