// Says what a panel shows. One request a line in, one answer a line out, both JSON.
//
// Request: {panel, answers: InfluxDB's series for each target, range_ms: [from, to]}, or {range_ms, points} for `$__interval`.

// Grafana's code asks the page for settings, and the browser for a language.
globalThis.window = globalThis;
globalThis.navigator ??= { language: 'en-US', languages: ['en-US'] };
const grafana = require('@grafana/data');
const moment = require('moment');
const { cells, lanes, lines, prepared, table, tiles } = require('./panels.js');

async function shown({ panel: json, answers, range_ms, points }) {
  const [from, to] = range_ms;
  moment.now = () => to;
  if (points) {
    return { interval: grafana.rangeUtil.calculateInterval({ from, to }, points).interval };
  }
  const { panel, data } = await prepared(json, answers);
  if (panel.type === 'stat' || panel.type === 'bargauge') {
    return { tiles: tiles(panel, data) };
  }
  if (panel.type === 'table') {
    return { table: table(panel, data) };
  }
  if (panel.type === 'heatmap') {
    return { lines: lines(panel, data), cells: cells(panel, data).cells };
  }
  return panel.type === 'state-timeline' ? { lanes: lanes(data, range_ms) } : { lines: lines(panel, data) };
}

async function answered() {
  for await (const line of require('node:readline').createInterface({ input: process.stdin })) {
    const answer = await shown(JSON.parse(line)).catch((error) => ({ error: String(error.stack ?? error) }));
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

answered();
