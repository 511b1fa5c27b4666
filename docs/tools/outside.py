"""Links that leave the site. They are listed, not fetched: a build must not depend on the network."""

from pathlib import Path
from typing import Any

from docutils import nodes


def list_links(app: Any, exception: Exception | None) -> None:
    """Write every address outside with the pages that link to it."""
    if exception is not None or app.builder.format != "html":
        return
    found: dict[str, set[str]] = {}
    for name in app.env.found_docs:
        for link in app.env.get_doctree(name).findall(nodes.reference):
            address = link.get("refuri", "")
            if address.startswith(("http:", "https:")):
                found.setdefault(address, set()).add(name)
    lines = [f"{address}  {', '.join(sorted(pages))}" for address, pages in sorted(found.items())]
    (Path(app.outdir).parent / "links-outside.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", list_links)
    return {"parallel_read_safe": True}
