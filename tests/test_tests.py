"""Rules for the tests themselves."""

import re
from pathlib import Path


def test_tests_do_not_import_tests():
    for path in Path(__file__).parent.glob("*.py"):
        assert not re.search(r"^(from|import) test_", path.read_text(encoding="utf-8"), re.MULTILINE), path.name
