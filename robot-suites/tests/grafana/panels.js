// A panel's data as Grafana shows it, by its own functions (@grafana/data): in Node and in a browser.
//
// Ours are two things that Grafana does not publish: the data frames of an InfluxQL answer (its data source is written in Go), and the
// list of options that its panels take, with the processors of @grafana/data.

const grafana = require('@grafana/data');
const { lastValueFrom } = require('rxjs');

const OPTIONS = {
  unit: grafana.stringOverrideProcessor,
  min: grafana.numberOverrideProcessor,
  max: grafana.numberOverrideProcessor,
  decimals: grafana.numberOverrideProcessor,
  displayName: grafana.displayNameOverrideProcessor,
  color: grafana.identityOverrideProcessor,
  noValue: grafana.stringOverrideProcessor,
  links: grafana.dataLinksOverrideProcessor,
  mappings: grafana.valueMappingsOverrideProcessor,
  thresholds: grafana.thresholdsOverrideProcessor,
};
const CUSTOM = [
  'align', 'axisPlacement', 'axisSoftMin', 'cellOptions', 'drawStyle', 'fillOpacity', 'hidden', 'hideFrom', 'insertNulls', 'inspect', 'lineInterpolation',
  'lineStyle', 'lineWidth', 'minWidth', 'pointSize', 'showPoints', 'spanNulls', 'stacking', 'thresholdsStyle', 'width',
];
const PLUGIN = { custom: { pointSize: 5 } }; // what Grafana's graph takes where a panel says nothing
const NUMBERS_ONLY = ['min', 'max', 'decimals'];
const COLOURS = ['green', 'yellow', 'orange', 'red', 'blue', 'light-blue', 'purple', 'text', '#808080'];

function option(id, path, process, isCustom = false) {
  const applies = (field) =>
    NUMBERS_ONLY.includes(id) ? field.type === 'number' : id !== 'mappings' || field.type !== 'time';
  return { id, path, process, isCustom, name: id, settings: {}, shouldApply: applies };
}

const options = new grafana.FieldConfigOptionsRegistry(() => [
  ...Object.entries(OPTIONS).map(([id, process]) => option(id, id, process)),
  ...CUSTOM.map((id) => option(`custom.${id}`, id, grafana.identityOverrideProcessor, true)),
]);
const theme = grafana.createTheme();
const TRANSFORMATIONS = ['joinByField', 'calculateField', 'filterFieldsByName', 'organize', 'renameByRegex']; // those of the boards; another one is an error
grafana.standardTransformersRegistry.setInit(() =>
  TRANSFORMATIONS.map((id) => Object.values(grafana.standardTransformers).find((one) => one.id === id)).map((one) => (
    { id: one.id, transformation: one, name: one.name }))
);

function colour(of) {
  return COLOURS.find((name) => theme.visualization.getColorByName(name) === of) ?? of ?? null;
}

function typeOf(values) {
  const known = values.find((one) => one !== null);
  return typeof known === 'string' || typeof known === 'boolean' ? typeof known : 'number';
}

function field(name, values, type, shown, labels) {
  return { name, type, values, config: shown ? { displayNameFromDS: shown } : {}, ...(labels ? { labels } : {}) };
}

// A frame for each column of each series, named by the alias; or one frame with the tags as columns.
function frames(target, series) {
  if (target.resultFormat === 'table') {
    if (!series.length) {
      return [];
    }
    const rows = (make) => series.flatMap((one) => one.values.map((row) => make(one, row)));
    const tags = Object.keys(series[0].tags ?? {});
    const columns = series[0].columns.slice(1).map((name, place) => {
      const values = rows((_, row) => row[place + 1]);
      return field(name, values, typeOf(values), name);
    });
    const fields = [
      field('Time', rows((_, row) => row[0]), 'time'),
      ...tags.map((tag) => field(tag, rows((one) => one.tags[tag]), 'string', tag)),
      ...columns,
    ];
    return [{ refId: target.refId, name: series[0].name, fields, length: fields[0].values.length }];
  }
  return series.flatMap((one) =>
    one.columns.slice(1).map((column, place) => {
      const plain = `${one.name}.${column}`;
      const name = (target.alias || plain).replace(/\$(\w+)/g, (whole, word) =>
        word === 'col' ? column : word.startsWith('tag_') ? (one.tags?.[word.slice(4)] ?? '') : whole
      );
      const values = one.values.map((row) => row[place + 1]);
      const fields = [
        field('Time', one.values.map((row) => row[0]), 'time'),
        field('Value', values, typeOf(values), name, one.tags ?? {}),
      ];
      return { refId: target.refId, name, fields, length: values.length };
    })
  );
}

function cell(of, value) {
  const shown = of.display(value);
  return { text: grafana.formattedValueToString(shown), colour: colour(shown.color) };
}

function values(panel, data) {
  return grafana.getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, data, theme, timeZone: 'utc',
    replaceVariables: (text) => text,
  });
}

function tiles(panel, data) {
  const { textMode } = panel.options;
  return values(panel, data).map(({ display }) => ({
    text: grafana.formattedValueToString(display),
    ...(textMode === 'value' ? {} : { name: display.title ?? '' }),
    colour: colour(display.color),
  }));
}

// A column that an override hides is left out.
function table(panel, data) {
  const frame = data[0];
  if (!frame) {
    return { columns: [], rows: [] };
  }
  const shown = frame.fields.filter((one) => !one.config.custom?.hidden);
  const [sort] = panel.options.sortBy;
  const by = sort ? frame.fields.findIndex((one) => grafana.getFieldDisplayName(one, frame, data) === sort.displayName) : -1;
  if (sort && by < 0) {
    throw new Error(`${panel.title}: no column ${sort.displayName}`);
  }
  const sorted = sort ? grafana.sortDataFrame(frame, by, sort.desc) : frame;
  const rows = Array.from({ length: frame.length }, (_, row) =>
    sorted.fields.filter((one) => !one.config.custom?.hidden).map((one) => cell(one, one.values[row]))
  );
  return { columns: shown.map((one) => grafana.getFieldDisplayName(one, frame, data)), rows };
}

function lanes(data, [from, to]) {
  return data.flatMap((one) => {
    const frame = grafana.applyNullInsertThreshold({ frame: one, refFieldPseudoMin: from, refFieldPseudoMax: to });
    const [time, ...values] = frame.fields;
    return values.map((of) => ({
      name: grafana.getFieldDisplayName(of, frame, data),
      states: of.values.map((value, i) => (value === null ? { at: time.values[i] } : { at: time.values[i], ...cell(of, value) })),
    }));
  });
}

// A heat map's cells, by the documented rules of Grafana's own calculation: by time some twenty columns of a round length, by value rows of
// the panel's size. What does not lie within the axis is not drawn.
const ROUND_S = [1, 2, 4, 5, 10, 15, 20, 30, 60, 120, 240, 300, 600, 900, 1200, 1800, 3600];
function cells(panel, data) {
  const points = data.flatMap((frame) => {
    const [time, ...values] = frame.fields;
    return values.flatMap((of) => of.values.map((y, i) => [time.values[i], y]).filter(([, y]) => y !== null));
  });
  const times = points.map(([x]) => x);
  const about_ms = (Math.max(...times) - Math.min(...times)) / 19;
  const width = 1000 * (ROUND_S.filter((one) => one * 1000 <= about_ms).pop() ?? 1);
  const height = Number(panel.options.calculation.yBuckets.value);
  const { min, max } = panel.options.yAxis;
  const row = (y) => Math.floor(y / height) * height;
  const lowest = Math.min(...points.map(([, y]) => row(y)));
  const found = new Map();
  for (const [x, y] of points) {
    const at = [Math.floor(x / width) * width, row(y)];
    // Grafana counts in an array: where rounding makes no whole number of its place, the count is lost.
    if (Number.isInteger((at[1] - lowest) / height) && at[1] >= min && at[1] < max) {
      found.set(`${at}`, { x: at[0], y: at[1], count: (found.get(`${at}`)?.count ?? 0) + 1 });
    }
  }
  return { width, height, min, max, cells: [...found.values()] };
}

function lines(panel, data) {
  return data.flatMap((frame) =>
    frame.fields.filter((one) => one.type !== 'time').map((of) => {
      const calculated = grafana.reduceField({ field: of, reducers: panel.options.legend?.calcs ?? [] });
      const calcs = (panel.options.legend?.calcs ?? []).map((id) => cell(of, calculated[id]).text);
      return {
        name: grafana.getFieldDisplayName(of, frame, data),
        colour: colour(grafana.getFieldSeriesColor(of, theme).color),
        listed: !of.config.custom?.hideFrom?.legend,
        dashed: of.config.custom?.lineStyle?.fill === 'dash',
        calcs,
        values: of.values.filter((value) => value !== null).length,
      };
    })
  );
}

// As Grafana reads a panel: with the threshold below all others, which JSON cannot hold.
function read(panel) {
  const plugin = { defaults: {}, fieldConfigDefaults: { defaults: PLUGIN, overrides: [] }, fieldConfigRegistry: options };
  const { fieldConfig } = grafana.getPanelOptionsWithDefaults({
    plugin, currentOptions: panel.options, currentFieldConfig: panel.fieldConfig, isAfterPluginChange: false,
  });
  return { ...panel, fieldConfig };
}

// The frames of InfluxDB's series for each target, with what transformations, defaults and overrides make of them.
async function prepared(json, answers) {
  const panel = read(json);
  const raw = panel.targets.flatMap((target, nth) => frames(target, answers[nth]));
  const data = grafana.applyFieldOverrides({
    data: await lastValueFrom(grafana.transformDataFrame(panel.transformations ?? [], raw)),
    fieldConfig: panel.fieldConfig, fieldConfigRegistry: options, theme, timeZone: 'utc', replaceVariables: (text) => text,
  });
  return { panel, data };
}

module.exports = { cells, lanes, lines, prepared, table, theme, tiles, values };
