"""The gallery shows what the examples draw and print anyway: they are run with a folder for their figures."""

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sphinx_gallery.scrapers import figure_rst

FOLDER = Path(mkdtemp(prefix="paceline-gallery-"))


def arguments(gallery_conf: Any, script_vars: Any) -> list[str]:  # noqa: ARG001
    """The arguments that an example is run with."""
    return ["--out", str(FOLDER)]


def figures_drawn(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:  # noqa: ARG001
    """The figures that are new in the folder, as reStructuredText."""
    places = []
    for path, place in zip(sorted(FOLDER.glob("*.png")), block_vars["image_path_iterator"], strict=False):
        path.replace(place)
        places.append(place)
    return str(figure_rst(places, gallery_conf["src_dir"]))
