// Draws a board's panels with Grafana's own components (@grafana/ui). Panels, InfluxDB's answers and ranges stand in window.BOARD, the events
// of annotations in window.EVENTS. npm has no component for a state timeline, a heat map or annotations: their shapes are ours, by what
// Grafana's documentation says; states, counts, texts and colours are made by the functions that the tests use.

import { dateTime, getDisplayProcessor } from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, Table, ThemeContext, TimeSeries } from '@grafana/ui';
import React from 'react';
import { createRoot } from 'react-dom/client';

import 'uplot/dist/uPlot.min.css';

import { interpolateOranges } from 'd3-scale-chromatic';

import { cells, lanes, prepared, theme, values } from './panels.js';

const WIDTH = 1440 - 32;
const COLUMN = (WIDTH + 8) / 24, CELL = 30, GAP = 8; // of Grafana's grid

const LABELS = 100; // pixels beside lanes and heat maps
const named = (name) => theme.visualization.getColorByName(name);

function Box({ left, top, width, height, colour, children }) {
  const style = { position: 'absolute', left, top, width, height, background: colour, overflow: 'hidden', lineHeight: `${height}px`, whiteSpace: 'nowrap', fontSize: 12 };
  return <div style={style}>{children}</div>;
}

function Lanes({ data, range_ms, width, height }) {
  const [from, to] = range_ms;
  const shown = lanes(data, range_ms);
  const row = height / shown.length;
  const place = (at) => LABELS + ((Math.min(Math.max(at, from), to) - from) / (to - from)) * (width - LABELS);
  return shown.flatMap(({ name, states }, nth) => [
    <Box key={name} left={0} top={nth * row} width={LABELS - 4} height={row}>{name}</Box>,
    ...states.filter((one) => 'text' in one).map((one) => {
      const end = states.find((other) => other.at > one.at)?.at ?? to;
      const left = place(one.at);
      return <Box key={`${name} ${one.at}`} left={left} top={nth * row + 1} width={place(end) - left} height={row - 2} colour={named(one.colour)}>
        <span style={{ color: '#000' }}>{one.text}</span></Box>;
    }),
  ]);
}

function Heat({ panel, data, range_ms, width, height }) {
  const [from, to] = range_ms;
  const heat = cells(panel, data);
  const most = Math.max(...heat.cells.map((one) => one.count));
  const high = (heat.height / (heat.max - heat.min)) * height;
  const wide = (heat.width / (to - from)) * (width - LABELS);
  const title = (y) => `${y} to ${y + heat.height} %`;
  return [
    ...[heat.min, heat.max - heat.height].map((y) => (
      <Box key={y} left={0} top={height - ((y - heat.min) / heat.height + 1) * high} width={LABELS} height={high}>{title(y)}</Box>)),
    ...heat.cells.map((one) => (
      <Box key={`${one.x} ${one.y}`} left={LABELS + ((one.x - from) / heat.width) * wide}
        top={height - ((one.y - heat.min) / heat.height + 1) * high} width={wide - 1} height={high - 1}
        colour={interpolateOranges(1 - Math.sqrt(one.count / most))} />)),
  ];
}

// Dashed lines at an event, and at the end of one that lasts, which is shaded.
function marked(config) {
  config.addHook('draw', (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.setLineDash([5, 5]);
    ctx.lineWidth = 2;
    for (const { colour, begin, end } of window.EVENTS) {
      const places = [begin, ...(end > begin ? [end] : [])].map((at) => plot.valToPos(at, 'x', true));
      ctx.strokeStyle = ctx.fillStyle = named(colour);
      for (const x of places) {
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.globalAlpha = 0.1;
      ctx.fillRect(places[0], bbox.top, (places[1] ?? places[0]) - places[0], bbox.height);
      ctx.globalAlpha = 1;
    }
    ctx.restore();
  });
  return null;
}

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
  if (panel.type === 'state-timeline') {
    return <Lanes {...{ data, range_ms, width, height }} />;
  }
  if (panel.type === 'heatmap') {
    return data.length ? <Heat {...{ panel, data, range_ms, width, height }} /> : 'No data';
  }
  if (panel.type !== 'timeseries') {
    throw new Error(`nobody draws a ${panel.type}`);
  }
  const [from, to] = range_ms.map((at) => dateTime(at));
  const legend = panel.options.legend;
  return data.length ? (
    <TimeSeries frames={data} timeRange={{ from, to, raw: { from, to } }} timeZone="utc" width={width} height={height} structureRev={1}
      legend={{ ...legend, showLegend: true }}>
      {marked}
    </TimeSeries>
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
                {(width, height) => (
                  <div style={{ position: 'relative', width, height }}><Content {...one} width={width} height={height} /></div>
                )}
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
