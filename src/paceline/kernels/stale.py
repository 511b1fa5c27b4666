"""Files of compiled code that no source leads to any more.

A loop is kept under a name that says what it was made from: its template, then digests of the package's sources, of the
policy's name, and of the policy's own files when it comes from outside the package. So an edit never meets old code;
but numba never removes it either. Here that is done, by the name alone.
"""

import re
from contextlib import suppress
from pathlib import Path

PACKAGE_DIGITS, POLICY_DIGITS, FILES_DIGITS = 16, 8, 16

NAME = (
    r"(?P<template>\w+)_"
    rf"(?P<package>[0-9a-f]{{{PACKAGE_DIGITS}}})"
    rf"(?P<policy>[0-9a-f]{{{POLICY_DIGITS}}})"
    rf"(?P<files>[0-9a-f]{{{FILES_DIGITS}}})"
)
# An index or a piece of code as numba names them: module.NAME-line.version.nbi and module.NAME-line.version.1.nbc, with
# an ending of its own while it is being written.
FILE = re.compile(rf"\w+\.{NAME}-\d+\.py\w+(?:\.nbi|\.\d+\.nbc)(?:\.tmp\.\w+)?")


def remove_stale(folder: Path, fresh: str) -> int:
    """Remove from a cache folder what the loop named ``fresh`` has outlived; says how many files that were.

    Other processes may do the same, or be about to read: numba takes a file that is gone for one that never was.
    """
    removed = 0
    with suppress(OSError):
        for path in folder.iterdir():
            if is_stale(path.name, fresh):
                with suppress(OSError):
                    path.unlink()
                    removed += 1
    return removed


def is_stale(file: str, fresh: str) -> bool:
    """Whether a file holds code of other sources of this package, or of another text of the same policy.

    >>> digits = "0" * 40
    >>> is_stale(f"engine.ask_{digits}-54.py311.nbi", f"tell_{digits}")
    False
    >>> is_stale(f"engine.ask_{digits}-54.py311.1.nbc", f"tell_1{digits[1:]}")
    True
    """
    found, new = FILE.fullmatch(file), re.fullmatch(NAME, fresh)
    if new is None or found is None:
        return False
    if found["package"] != new["package"]:
        return True
    return (found["template"], found["policy"]) == (new["template"], new["policy"]) and found["files"] != new["files"]
