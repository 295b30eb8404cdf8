"""The HTML as it is printed: without what only a screen shows, its figures as images.

Promise: the pages look as if the whole HTML had been set. WeasyPrint reads and styles each element that it is given; three in
four of a report's thousands lie within figures, where no style of the page reaches, or are never shown on paper.
"""

from __future__ import annotations

import base64
import re

from daq_bench.bench_report.document.canvas import HOVER

SCREEN_ONLY = re.compile(f'{HOVER.pattern}|<details class="numbers">.*?</details>|<wbr>', re.DOTALL)
PLOT = re.compile(r'<svg class="plot".*?<title[^>]*>(?P<alt>.*?)</title>.*?</svg>', re.DOTALL)


def for_paper(html: str) -> str:
    return PLOT.sub(_image, SCREEN_ONLY.sub("", html))


def _image(plot: re.Match[str]) -> str:
    content = base64.b64encode(plot[0].encode()).decode()
    return f'<img class="plot" alt="{plot["alt"]}" src="data:image/svg+xml;base64,{content}">'
