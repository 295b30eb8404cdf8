"""Small pictures of the samples' first pages, and the page that shows them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.samples.documents import Sample
from daq_bench.samples.servers import MARK

PAGE = REPOSITORY / "docs" / "samples.md"
PICTURES = REPOSITORY / "docs" / "images" / "samples"
WIDTH_PX, QUALITY, BYTES_MAX = 560, 62, 400_000  # of a picture, of a picture, of all pictures
SCREEN_PX = (1280, 1700)
TOOL_S_MAX = 180.0
HEAD = f"""# What you will get

`make samples` (seven minutes, OUT=build/samples) makes these documents of simulated servers, and this page with their first
pages. No server was measured: each page says {MARK}, the prices are made up, and no bundle is left behind. The runs are those of
`snb-100s` against `dune-snb` as shipped.
"""


@dataclass(frozen=True)
class Tools:
    pdftoppm: str
    chromium: str

    @staticmethod
    def found() -> Tools:
        """Raises BenchError that names what is missing, before anything is simulated."""
        known = {name: shutil.which(name) for name in ("pdftoppm", "chromium")}
        if missing := [name for name, path in known.items() if path is None]:
            raise BenchError(f"{' and '.join(missing)}: not on PATH. Run `make packages-test`")
        return Tools(str(known["pdftoppm"]), str(known["chromium"]))

    def picture(self, shown: Path, folder: Path) -> Path:
        """The first page as a PNG."""
        made = folder / f"{shown.stem}.png"
        if shown.suffix == ".pdf":
            words = [self.pdftoppm, "-png", "-singlefile", "-r", "110", str(shown), str(made.with_suffix(""))]
        else:
            words = [self.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            words += [f"--user-data-dir={folder / 'chromium'}", "--window-size={},{}".format(*SCREEN_PX)]
            words += [f"--screenshot={made}", shown.as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TOOL_S_MAX, check=False)
        if done.returncode or not made.is_file():
            raise BenchError(f"{shown.name} cannot be pictured: {done.stderr.strip()[-300:]}")
        return made


def write(samples: Sequence[Sample], tools: Tools, pictures: Path = PICTURES, page: Path = PAGE) -> None:
    """Raises BenchError where the pictures are larger than a repository should carry."""
    pictures.mkdir(parents=True, exist_ok=True)
    for one in samples:
        with tempfile.TemporaryDirectory() as folder, Image.open(tools.picture(one.shown, Path(folder))) as image:
            height = round(image.height * WIDTH_PX / image.width)
            small = image.convert("RGB").resize((WIDTH_PX, height), Image.Resampling.LANCZOS)
            small.save(pictures / f"{one.name}.webp", quality=QUALITY, method=6)
    size = sum((pictures / f"{one.name}.webp").stat().st_size for one in samples)
    if size > BYTES_MAX:
        raise BenchError(f"{pictures}: {size} B of pictures, at most {BYTES_MAX}. Lower QUALITY or WIDTH_PX")
    page.write_text(text_of(samples), encoding="utf-8")


def text_of(samples: Sequence[Sample]) -> str:
    parts = [
        f"## {one.title}\n\nSource: {one.of}.\n\n![{one.title}: its first page](images/samples/{one.name}.webp)\n"
        for one in samples
    ]
    return "\n".join([HEAD, *parts])
