"""Pages of the site that stand at the root of the repository, where a code host looks for them."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}


def read(app: Any, name: str, source: list[str]) -> None:  # noqa: ARG001
    """In place of a page that only points to the root, what it points to; links follow."""
    if name in PAGES:
        text = (ROOT / PAGES[name]).read_text(encoding="utf-8")
        source[0] = re.sub(r"\]\((?![a-z]+:|#)(docs/)?", lambda link: "](" if link[1] else "](../", text)
    for page, file in PAGES.items():
        source[0] = source[0].replace(f"](../{file}", f"]({page}.md")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
