// Draws a board's panels with Grafana's own components (@grafana/ui). Panels, InfluxDB's answers and ranges stand in window.BOARD.

import { dateTime, getDisplayProcessor } from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, Table, ThemeContext, TimeSeries } from '@grafana/ui';
import React from 'react';
import { createRoot } from 'react-dom/client';

import 'uplot/dist/uPlot.min.css';

import { prepared, theme, values } from './panels.js';

const WIDTH = 1440 - 32;
const COLUMN = (WIDTH + 8) / 24, CELL = 30, GAP = 8; // of Grafana's grid

function Content({ panel, data, range_ms, width, height }) {
  if (panel.type === 'stat') {
    const shown = values(panel, data);
    return shown.map(({ display }, nth) => (
      <div key={nth} style={{ float: 'left' }}>
        <BigValue value={display} theme={theme} width={width / shown.length} height={height} textMode={panel.options.textMode}
          colorMode={panel.options.colorMode} graphMode="none" justifyMode={panel.options.justifyMode} count={shown.length} />
      </div>
    ));
  }
  if (panel.type === 'bargauge') {
    return values(panel, data).map(({ display, field }, nth) => (
      <BarGauge key={nth} value={display} field={field} display={getDisplayProcessor({ field: { config: field, type: 'number' }, theme })}
        theme={theme} width={width} height={28} orientation="horizontal" displayMode={panel.options.displayMode} />
    ));
  }
  if (panel.type === 'table') {
    return data[0] ? <Table data={data[0]} width={width} height={height} initialSortBy={panel.options.sortBy} /> : 'No data';
  }
  if (panel.type !== 'timeseries') {
    return `(no component of npm draws a ${panel.type})`;
  }
  const [from, to] = range_ms.map((at) => dateTime(at));
  const legend = panel.options.legend;
  return data.length ? (
    <TimeSeries frames={data} timeRange={{ from, to, raw: { from, to } }} timeZone="utc" width={width} height={height} structureRev={1}
      legend={{ ...legend, showLegend: true }} />
  ) : 'No data';
}

function Board({ panels }) {
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div style={{ position: 'relative', margin: 16, width: WIDTH }}>
        {panels.map((one) => {
          const { x, y, w, h } = one.panel.gridPos;
          const size = { width: w * COLUMN - GAP, height: h * (CELL + GAP) - GAP };
          return (
            <div key={one.panel.id} data-title={one.panel.title} style={{ position: 'absolute', left: x * COLUMN, top: y * (CELL + GAP) }}>
              <PanelChrome title={one.panel.title} {...size}>
                {(width, height) => <Content {...one} width={width} height={height} />}
              </PanelChrome>
            </div>
          );
        })}
      </div>
    </ThemeContext.Provider>
  );
}

async function draw() {
  const panels = await Promise.all(
    window.BOARD.map(async (one) => ({ ...one, ...(await prepared(one.panel, one.answers)) }))
  );
  createRoot(document.getElementById('board')).render(<Board panels={panels} />);
}

draw().catch((error) => { document.title = String(error.stack ?? error); throw error; });
