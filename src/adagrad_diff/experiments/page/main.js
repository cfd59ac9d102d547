// What people do with the page.

const drawAll = () => {
  drawGaps();
  drawCurves();
  drawSteps();
  drawMap();
  fillTables();
};

const slider = byId("eta"), said = document.querySelector("#chooser output");

const choose = (k) => {
  chosen.eta = k;
  slider.value = k;
  said.textContent = `eta = ${number(etas[k])}`;
  slider.setAttribute("aria-valuetext", number(etas[k]));
  for (const point of Object.values(pointers)) point();
  drawCurves();
  drawSteps();
  fillTables();
};

const chooseIterate = (name) => {
  chosen.iterate = name;
  for (const body of document.querySelectorAll("#scores tbody")) body.hidden = body.dataset.iterate !== name;
  drawAll();
};

const boxes = [...document.querySelectorAll("#legend input")];
const chooseRules = () => {
  chosen.shown = new Set(boxes.filter((box) => box.checked).map((box) => Number(box.value)));
  drawAll();
};

const sample = (rule) => {
  const svg = make("svg", { viewBox: "0 0 38 14", width: 38, height: 14, "aria-hidden": "true", class: "drawing" });
  if (!rule.free) {
    svg.append(make("path", { d: "M0,7H38", stroke: rule.color, "stroke-width": rule.paper ? 2.6 : 1.6, "stroke-dasharray": rule.dash.join(" ") || "none" }));
  }
  svg.append(marker(rule, 19, 7));
  return svg;
};

for (const box of boxes) {
  const rule = rules[Number(box.value)], chip = box.closest(".chip");
  chip.querySelector(".sample").append(sample(rule));
  box.addEventListener("change", chooseRules);
  for (const event of ["pointerenter", "focusin"]) chip.addEventListener(event, () => lift(chosen.shown.has(rule.index) ? rule.index : null));
  for (const event of ["pointerleave", "focusout"]) chip.addEventListener(event, () => lift(null));
}
for (const button of document.querySelectorAll("[data-show]")) {
  const wanted = { all: () => true, none: () => false, paper: (rule) => rule.paper }[button.dataset.show];
  if (button.dataset.show === "paper" && !rules.some(wanted)) button.hidden = true;
  button.addEventListener("click", () => {
    for (const box of boxes) box.checked = wanted(rules[Number(box.value)]);
    chooseRules();
  });
}
for (const radio of document.querySelectorAll("[name=iterate]")) radio.addEventListener("change", () => chooseIterate(radio.value));
for (const button of document.querySelectorAll("[data-csv]")) button.addEventListener("click", () => download(button.dataset.csv));
for (const details of document.querySelectorAll("figure details")) details.addEventListener("toggle", fillTables);
slider.addEventListener("input", () => choose(Number(slider.value)));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { tip(""); lift(null); } });

document.documentElement.classList.add("script");
for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;
byId("chooser").hidden = etas.length === 0;
slider.disabled = etas.length < 2;

// Begin where the first rule, or the first that has a step size, is best.
const begin = data.scores.find((score) => score.best_eta !== null && etas.includes(score.best_eta));
chosen.shown = new Set(boxes.filter((box) => box.checked).map((box) => Number(box.value))); // some browsers remember them
const checked = document.querySelector("[name=iterate]:checked");
if (checked) chooseIterate(checked.value);
else drawAll();
if (etas.length) choose(begin ? etas.indexOf(begin.best_eta) : Math.floor(etas.length / 2));

let width = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth === width) return;
  width = document.body.clientWidth;
  drawAll();
}).observe(document.body);
