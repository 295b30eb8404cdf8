"""Runs axe-core, Deque's checker of accessibility, over a page in a real Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from importlib.resources import files
from pathlib import Path

POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")  # a report's own forbids scripts, axe too
RUN = (
    "axe.run(document, {resultTypes: ['violations']}).then(found => { const told = document.createElement('pre'); told.id = 'told';"
    " told.textContent = JSON.stringify(found.violations.flatMap(one => one.nodes.map(node =>"
    " [one.id, one.impact, node.html.slice(0, 160)].join(' ')))); document.body.append(told); });"
)
FRAME = "<iframe src={address!r} style='border: 0' width={width} height=3000></iframe><pre id=shown></pre>"
HEARD = "<script>addEventListener('message', one => {{ document.getElementById('shown').textContent = one.data; }});</script>"
TOLD = "new MutationObserver(() => { const told = document.getElementById('told'); if (told) parent.postMessage(told.textContent, '*'); })"
TRIES = 3  # a Chromium on a busy machine may end before the page has answered


def findings(page: Path, width: int, dark: bool) -> list[str]:
    """Returns axe's objections on a screen `width` pixels wide: rule, impact and element. Fails if axe does not answer."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "no chromium on PATH: `make packages-test`; on Ubuntu: `snap install chromium`"
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    scripts = f"<script>{TOLD}.observe(document, {{childList: true, subtree: true}});</script><script>{axe}</script><script>{RUN}</script>"
    with tempfile.TemporaryDirectory() as folder:
        inner, outer = Path(folder) / "page.html", Path(folder) / "frame.html"
        inner.write_text(text.replace("</html>", f"{scripts}</html>"), encoding="utf-8")
        outer.write_text(
            HEARD.format() + FRAME.format(address=inner.as_uri(), width=width), encoding="utf-8"
        )  # Chromium's own window is 500 pixels wide at least
        words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=30000",
            "--window-size=1400,3000", f"--user-data-dir={folder}/chromium", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--dump-dom", outer.as_uri()]  # fmt: skip
        told = None
        for _ in range(TRIES):
            dom = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # the test has a limit
            told = re.search(r'<pre id="shown">(.+?)</pre>', dom, flags=re.DOTALL)
            if told:
                break
    assert told is not None, f"axe did not answer for {page}, {TRIES} times"
    found: list[str] = json.loads(unescape(told[1]))
    return found
