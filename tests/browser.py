"""A real browser looks at a page: Chromium without a window, and what it saw as plain data."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for path in map(shutil.which, BROWSERS) if path), None)

# Runs in a copy of the page, which lies in a frame: a window of Chromium is never narrower than 500 pixels.
LOOK = """
<script>
const violations = [];
document.addEventListener("securitypolicyviolation", event => violations.push(event.blockedURI));
window.addEventListener("load", () => {
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  const box = part => { const edge = part.getBoundingClientRect(); return [edge.left, edge.right, edge.height]; };
  parent.postMessage(JSON.stringify({
    width: innerWidth,
    needed: document.documentElement.scrollWidth,
    images: [...document.images].map(image => [image.complete, image.naturalWidth, ...box(image)]),
    boxes: [...document.querySelectorAll(".scroll, figure, .legend, details, h1, p")].map(box),
    figures: [...document.querySelectorAll("figure")].map(part => part.getBoundingClientRect().top),
    paper: getComputedStyle(document.body).backgroundColor,
    inks: [...document.querySelectorAll("body, .note, a, .caption, .alarm")].map(part => getComputedStyle(part).color),
    fetched: performance.getEntriesByType("resource").map(part => part.name).filter(name => !name.startsWith("data:")),
    violations,
  }), "*");
});
</script>
"""
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe src="looked-at.html" style="border:0;width:{width}px;height:900px"></iframe>
<pre id="seen"></pre>
<script>
window.addEventListener("message", event => {{ document.getElementById("seen").textContent = event.data; }});
</script>
"""


def chromium(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the browser to its end, with a profile of its own and no way to the network."""
    assert BROWSER is not None
    fixed = (
        "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run "
        "--disable-background-networking --enable-logging=stderr --virtual-time-budget=10000"
    )
    return subprocess.run(
        [BROWSER, *fixed.split(), "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def seen(page: Path, folder: Path, width: int, *, dark: bool = False) -> dict[str, Any]:
    """What a browser sees of a page at some width, all parts unfolded; and "console", what it complained of."""
    whole = page.read_text(encoding="utf-8")
    allowed = whole.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';", 1)
    assert allowed != whole, "the page does not forbid scripts"
    (folder / "looked-at.html").write_text(allowed.replace("</style>", f"</style>{LOOK}", 1), encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(width=width), encoding="utf-8")
    scheme = [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    done = chromium(folder / "profile", *scheme, "--window-size=1400,1000", "--dump-dom", frame.as_uri())
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page did not answer: {done.stderr[-2000:]}"
    return json.loads(unescape(found[1])) | {"console": re.findall(r".*CONSOLE.*", done.stderr)}


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as the Web Content Accessibility Guidelines have it, from 1 to 21."""
    light, dark = sorted(map(luminance, (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
