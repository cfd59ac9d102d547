// The three figures with lines: gap against eta, gap and step against the iteration.

const byId = (id) => document.getElementById(id);

const pointers = {}; // how the figures that show all step sizes point at the chosen one, without being drawn again

const nothing = (figure, sentence) => figure.querySelector(".drawing").replaceChildren(html("p", { class: "empty" }, sentence));

const drawGaps = () => {
  const figure = byId("gaps"), shown = shownRules(), free = shown.filter((rule) => rule.free);
  const ends = new Map(shown.map((rule) => [rule, rule.free ? [spread(runOf(rule))] : etas.map((eta) => spread(runOf(rule, eta)))]));
  if (!shown.length) return nothing(figure, "No rule is chosen.");
  const strip = free.length ? Math.max(76, (figure.clientWidth < 600 ? 14 : 20) * free.length) : 0;
  const panel = new Panel(figure, {
    label: figure.querySelector("h3").textContent, describe: `${shown.length} rules, ${etas.length} step sizes. The table below has the numbers.`,
    x: etas.length ? [etas[0], etas[etas.length - 1]] : [0.1, 1], y: range([...ends.values()].flat().flatMap((end) => [end.low, end.high]), ceiling),
    across: "step size eta", up: `${data.gap_name}, ${words[chosen.iterate]}`, strip,
  });
  if (etas.length) {
    const now = make("path", { class: "now" });
    panel.svg.append(now);
    pointers.gaps = () => now.setAttribute("d", `M${panel.x(etas[chosen.eta])},${margin.top}V${panel.bottom}`);
    pointers.gaps();
  }
  const every = etas.length > 1 ? Math.ceil(11 / (panel.x(etas[1]) - panel.x(etas[0]) || 11)) : 1; // markers must not hide each other
  let column = 0;
  for (const rule of shown) {
    const group = panel.group(rule.index), end = ends.get(rule);
    const places = rule.free ? [panel.right + 14 + (++column - 0.5) * (strip / free.length)] : etas.map(panel.x);
    if (rule.free) drawWhisker(panel, group, rule, places[0], end[0]);
    else {
      panel.band(rule, etas, end.map((e) => e.low), end.map((e) => e.high), shown.length);
      panel.line(group, rule, etas, end.map((e) => e.median));
    }
    end.forEach(({ low, median, high }, k) => {
      if (median === null) return;
      const [x, y] = [places[k], panel.y(median)];
      if (median === Infinity) group.append(make("path", { class: "cross", d: `M${x - 3},${y - 3}l6,6m0,-6l-6,6`, stroke: rule.color, "stroke-width": 1.6 }));
      else if (rule.free || k % every === rule.index % every) panel.mark(group, rule, x, y);
      const where = rule.free ? "no step size" : `eta ${number(etas[k])}`;
      const over = data.starts > 1 && high !== low ? `\nfrom ${number(low)} to ${number(high)} over ${data.starts} starts` : "";
      panel.remember(x, y, rule.index, `${rule.name}, ${where}\ngap ${number(median)}${over}`, k);
    });
    if (!rule.free && rule.published !== null) drawPublished(panel, group, rule, end);
  }
  panel.click = (best, x) => {
    if (!etas.length || x > panel.right + 7) return;
    choose(etas.reduce((near, eta, k) => (Math.abs(panel.x(eta) - x) < Math.abs(panel.x(etas[near]) - x) ? k : near), 0));
  };
  panel.show();
};

const drawWhisker = (panel, group, rule, x, { low, high }) => {
  if (low === null || low === Infinity) return;
  group.append(make("path", { class: "whisker", d: `M${x},${panel.y(low)}V${panel.y(high)}`, stroke: rule.color, "stroke-width": 3, "stroke-opacity": 0.35 }));
};

// The published step size is where most people would begin; it need not be one of ours.
const drawPublished = (panel, group, rule, end) => {
  if (!panel.x.inside(rule.published)) return;
  const right = etas.findIndex((eta) => eta >= rule.published * (1 - 1e-9)), left = Math.max(0, right - 1);
  const [a, b] = [end[left].median, end[right].median];
  if (!(a > 0 && b > 0 && Number.isFinite(a) && Number.isFinite(b))) return;
  const part = left === right ? 0 : Math.log(rule.published / etas[left]) / Math.log(etas[right] / etas[left]);
  const y = panel.y(a ** (1 - part) * b ** part);
  group.append(make("circle", { class: "ring", stroke: rule.color, cx: panel.x(rule.published), cy: y, r: 7 }));
};

// What decides about the scale: the numbers of the rules shown at all step sizes, so that what the slider changes is the lines.
const extremes = new Map();
const valuesOf = (id, lines) => {
  const key = [id, ...chosen.shown].join();
  if (!extremes.has(key)) {
    const all = shownRules().flatMap((rule) => (rule.free ? [undefined] : etas).map((eta) => runOf(rule, eta))).filter((run) => run);
    const values = all.map(lines).flatMap(({ median, low, high }) => [...median, ...(low || []), ...(high || [])]);
    extremes.set(key, values.filter((value) => Number.isFinite(value) && value > 0));
  }
  return extremes.get(key);
};

// A figure over the iterations at the chosen step size: `lines(run)` gives median, low and high.
const drawRuns = (id, up, lines, top) => {
  const figure = byId(id);
  const eta = etas[chosen.eta];
  const drawn = shownRules().map((rule) => [rule, runOf(rule, eta)]).filter(([, run]) => run).map(([rule, run]) => [rule, lines(run)]);
  const values = valuesOf(id, lines);
  if (!values.length) return nothing(figure, "There is nothing to draw for the rules chosen.");
  const steps = data.iterations, shift = steps[0] === 0 ? 1 : 0;
  const panel = new Panel(figure, {
    label: figure.querySelector("h3").textContent, describe: `${drawn.length} rules${eta === undefined ? "" : `, eta ${number(eta)}`}. The table below has the numbers.`,
    x: [steps[0], steps[steps.length - 1]], y: range(values, top), shift, across: "iteration", up: eta === undefined ? up : `${up}, eta = ${number(eta)}`,
  });
  for (const [rule, { median, low, high }] of drawn) {
    const group = panel.group(rule.index);
    if (low && data.starts > 1) panel.band(rule, steps, low, high, drawn.length);
    panel.line(group, rule, steps, median);
    const every = Math.max(1, Math.floor(steps.length / 6)); // a marker here and there, at other places for each rule
    median.forEach((value, k) => {
      if (!Number.isFinite(value)) return;
      const [x, y] = [panel.x(steps[k]), panel.y(value)];
      if (k % every === rule.index % every) panel.mark(group, rule, x, y);
      panel.remember(x, y, rule.index, `${rule.name}, iteration ${steps[k]}\n${number(value)}`);
    });
  }
  panel.show();
};

const drawCurves = () => drawRuns("curves", `${data.gap_name}, last iterate`, (run) => run.curve, ceiling);
const drawSteps = () => drawRuns("steps", "mean step", (run) => ({ median: run.step || [] }), Infinity);
