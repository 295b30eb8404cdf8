"""The layout of every dashboard as one HTML page: Grafana itself draws the data; this shows what stands where, and how large."""

from __future__ import annotations

from html import escape
from pathlib import Path

from daq_bench.bench_dashboards.catalogue import DASHBOARDS
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.looks import Json

COLUMNS, ROW_PX, GAP_PX = 24, 38, 8  # Grafana's grid
STYLE = """
body { background: #111217; color: #ccccdc; font: 14px system-ui, sans-serif; margin: 24px auto; padding: 0 24px; max-width: 1872px; }
h1 { font-size: 22px; font-weight: 500; margin: 32px 0 4px; } p { color: #9fa0ab; margin: 0 0 8px; }
.menu span { display: inline-block; border: 1px solid #34363d; padding: 4px 10px; margin-right: 8px; border-radius: 2px; }
.menu b { color: #6e9fff; font-weight: 400; margin-right: 4px; }
.grid { position: relative; margin-top: 12px; }
.panel { position: absolute; box-sizing: border-box; background: #181b1f; border: 1px solid #2c2f36; padding: 8px; overflow: hidden; }
.panel .title { font-weight: 500; } .panel .kind { color: #6e9fff; } .panel .say { color: #9fa0ab; font-size: 12px; margin-top: 4px; }
.tile { background: #167243; color: white; text-align: center; }
.tile .kind, .tile .say { color: #d8f5e5; }
.row { position: absolute; font-weight: 500; }
@media (max-width: 1000px) { /* one below the other, as Grafana shows them on a phone */
  .grid { height: auto !important; } .panel, .row { position: static; width: auto !important; height: auto !important; margin-bottom: 8px; }
}
"""


def write_preview(file: Path) -> Path:
    declared = Declared.load()
    body = f"<main>{''.join(_dashboard(one, one.json(declared)) for one in DASHBOARDS)}</main>"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Dashboards</title>'
    page = f'<!doctype html><html lang="en">{head}<style>{STYLE}</style>{body}</html>\n'
    file.write_text(page, encoding="utf-8")
    return file


def _dashboard(dashboard: Dashboard, made: Json) -> str:
    menu = "".join(
        f"<span><b>{escape(one.label)}</b>{'All' if one.all_of_them else '...'}</span>" for one in dashboard.variables
    )
    menu += "".join(f"<span>{escape(one.name)}</span>" for one in dashboard.annotations if not one.enabled)
    bottom = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in made["panels"])
    panels = "".join(_panel(one) for one in made["panels"])
    return (
        f"<h1>{escape(dashboard.title)}</h1><p>{escape(dashboard.description)} Range {dashboard.begin} to {dashboard.end}, "
        f'refresh {dashboard.refresh or "off"}.</p><div class="menu">{menu}</div>'
        f'<div class="grid" style="height:{bottom * ROW_PX}px">{panels}</div>'
    )


def _panel(panel: Json) -> str:
    at = panel["gridPos"]
    place = (
        f"left:{100 * at['x'] / COLUMNS:g}%;top:{at['y'] * ROW_PX}px;"
        f"width:calc({100 * at['w'] / COLUMNS:g}% - {GAP_PX}px);height:{at['h'] * ROW_PX - GAP_PX}px"
    )
    if panel["type"] == "row":
        folded = f" (folded, {len(panel['panels'])} panels)" if panel["collapsed"] else ""
        return f'<div class="row" style="{place}">&#9662; {escape(panel["title"])}{folded}</div>'
    unit = panel["fieldConfig"]["defaults"]["unit"]
    tile = panel["type"] == "stat"
    return (
        f'<div class="panel{" tile" if tile else ""}" style="{place}"><div class="title">{escape(panel["title"])}</div>'
        f'<div class="kind">{panel["type"]}, {unit}</div><div class="say">{escape(panel["description"])}</div></div>'
    )
