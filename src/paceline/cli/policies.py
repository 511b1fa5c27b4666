"""``paceline policies``: what there is to choose from."""

import argparse

SUMMARY = "the policies: names, parameters, one line each"
DESCRIPTION = "List the policies with their parameters and defaults; with a NAME, the whole description of one."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="describe this policy in full")


def run(options: argparse.Namespace) -> None:
    """List, or describe one."""
    import inspect

    from paceline.policies import POLICIES, make_policy

    if options.name is not None:
        policy = type(make_policy(options.name))
        print(f"{policy.name}\n\n{inspect.getdoc(policy)}")
        return
    width = max(map(len, POLICIES))
    for name, policy in POLICIES.items():
        parameters = repr(policy()).partition("(")[2].rstrip(")")
        first_line = (inspect.getdoc(policy) or "").splitlines()[0]
        limits = " One resource only." if policy.resources == 1 else ""
        print(f"{name:<{width}} {parameters or 'no parameters'}\n{'':<{width}} {first_line}{limits}")
