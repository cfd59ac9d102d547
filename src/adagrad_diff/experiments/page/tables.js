// The numbers behind each figure: tables for reading, CSV for everything else.

const table = (caption, head, rows) => {
  const element = html("table", {}, html("caption", {}, caption));
  element.append(html("thead", {}, html("tr", {}, ...head.map((text) => html("th", { scope: "col" }, text)))));
  element.append(html("tbody", {}, ...rows.map(([first, ...cells]) => html("tr", {}, html("th", { scope: "row" }, first), ...cells.map((cell) => html("td", {}, cell))))));
  return element;
};

const range3 = ({ low, median, high }) => (low === high ? number(median) : `${number(median)} (${number(low)} to ${number(high)})`);

const overEtas = (show) => () => {
  const shown = shownRules(), tuned = shown.filter((rule) => !rule.free);
  const rows = etas.map((eta) => [number(eta), ...shown.map((rule) => (rule.free ? "" : show(spread(runOf(rule, eta)))))]);
  if (tuned.length < shown.length) rows.push(["none", ...shown.map((rule) => (rule.free ? show(spread(runOf(rule))) : ""))]);
  return [`Relative gap at the end, ${words[chosen.iterate]}`, ["step size", ...shown.map((rule) => rule.name)], rows];
};

const overIterations = (what, values) => () => {
  const eta = etas[chosen.eta], shown = shownRules().filter((rule) => runOf(rule, eta));
  const rows = data.iterations.map((iteration, k) => [String(iteration), ...shown.map((rule) => values(runOf(rule, eta), k))]);
  return [`${what}${eta === undefined ? "" : ` at eta ${number(eta)}`}`, ["iteration", ...shown.map((rule) => rule.name)], rows];
};

const lost = (value) => value ?? Infinity;
const contents = {
  gaps: overEtas(range3),
  curves: overIterations("Relative gap of the last iterate", ({ curve }, k) => range3({ low: lost(curve.low[k]), median: lost(curve.median[k]), high: lost(curve.high[k]) })),
  steps: overIterations("Mean step", ({ step }, k) => number((step || [])[k])),
  map: overEtas(({ median }) => number(median)),
};

// A closed table is not made: there may be thousands of numbers in it.
const fillTables = () => {
  for (const [id, content] of Object.entries(contents)) {
    const details = byId(id).querySelector("details"), host = details.querySelector("div");
    if (details.open) host.replaceChildren(table(...content()));
    else host.replaceChildren();
  }
};

const quoted = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = (rows) => rows.map((row) => row.map(quoted).join(",") + "\r\n").join("");

const downloads = {
  scores: () => {
    const names = Object.keys(data.scores[0] || {});
    return [names, ...data.scores.map((score) => names.map((name) => score[name]))];
  },
  gaps: () => [["rule", "eta", "start", "last", "best", "average", "failed"],
    ...data.runs.flatMap((run) => run.last.map((gap, k) => [run.rule, run.eta, k, gap, (run.best || [])[k], (run.average || [])[k], run.failed]))],
  curves: () => [["rule", "eta", "iteration", "median", "low", "high", "step"],
    ...data.runs.flatMap((run) => data.iterations.map((n, k) =>
      [run.rule, run.eta, n, run.curve.median[k], run.curve.low[k], run.curve.high[k], (run.step || [])[k]]))],
};

const download = (name) => {
  const address = URL.createObjectURL(new Blob([csv(downloads[name]())], { type: "text/csv;charset=utf-8" }));
  const link = html("a", { href: address, download: `${name}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
