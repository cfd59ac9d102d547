// The data, what has been chosen, and what follows from both.

const data = JSON.parse(document.getElementById("data").textContent);
const colour = /^#[0-9a-f]{6}$/i;
const paper = ["AdaGradDiff", "AdaGrad"];
const rules = data.rules.map((rule, index) => ({
  ...rule, index, paper: paper.includes(rule.name), dash: (rule.dash || []).filter(Number.isFinite), marker: String(rule.marker || "o"),
  color: colour.test(rule.color) ? rule.color : "#767676",
}));
const etas = [...data.etas].sort((a, b) => a - b);
const chosen = { iterate: "last", eta: 0, shown: new Set() };

const runs = new Map();
for (const run of data.runs) runs.set(JSON.stringify([run.rule, run.eta]), run);
const runOf = (rule, eta) => runs.get(JSON.stringify([rule.name, rule.free ? null : eta]));

// Over the starts; a run that diverged is worse than every number.
const spread = (run) => {
  const ends = run ? (run[chosen.iterate] || []).map((gap) => gap ?? Infinity).sort((a, b) => a - b) : [];
  if (!ends.length) return run && run.failed ? { low: Infinity, median: Infinity, high: Infinity } : { low: null, median: null, high: null };
  const half = ends.length / 2;
  const median = ends.length % 2 ? ends[Math.floor(half)] : (ends[half - 1] + ends[half]) / 2;
  return { low: ends[0], median, high: ends[ends.length - 1] };
};

const shownRules = () => rules.filter((rule) => chosen.shown.has(rule.index));

// From the smallest to the largest of some numbers; what is far worse than the beginning is not worth the room.
const range = (values, ceiling = Infinity) => {
  const positive = values.filter((value) => Number.isFinite(value) && value > 0);
  if (!positive.length) return [0.1, 1];
  const low = Math.max(1e-17, positive.reduce((a, b) => Math.min(a, b)));
  const high = Math.max(low, Math.min(ceiling, positive.reduce((a, b) => Math.max(a, b))));
  return high > 1.2 * low ? [low, high] : [low / 2, high * 2];
};

const beginning = () => {
  const first = data.runs.map((run) => run.curve.median[0]).filter((gap) => Number.isFinite(gap) && gap > 0).sort((a, b) => a - b);
  return first.length ? first[Math.floor(first.length / 2)] : 1;
};
const ceiling = 100 * beginning();
const words = { last: "last iterate", best: "best iterate so far", average: "average of the iterates" };
