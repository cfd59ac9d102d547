// The map: a row for each rule, a column for each step size, a colour for the gap.

const ramp = ["#00224e", "#213b6e", "#4c556c", "#6c6e72", "#8e8978", "#b3a772", "#dbc75d", "#fee838"]; // cividis: for every kind of sight

const shade = (part) => {
  const place = Math.min(1, Math.max(0, part)) * (ramp.length - 1), k = Math.min(ramp.length - 2, Math.floor(place));
  const mixed = [1, 3, 5].map((at) => {
    const [a, b] = [ramp[k], ramp[k + 1]].map((color) => parseInt(color.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - k)).toString(16).padStart(2, "0");
  });
  return `#${mixed.join("")}`;
};

const drawMap = () => {
  const figure = byId("map"), shown = shownRules(), host = figure.querySelector(".drawing");
  if (!shown.length || !etas.length) return nothing(figure, shown.length ? "There is no step size to compare." : "No rule is chosen.");
  const width = Math.max(260, Math.round(host.clientWidth || 900)), names = width < 600 ? 120 : 150, row = 20;
  const [right, top, bottom] = [width - 6, 8, 8 + row * shown.length], column = (right - names) / etas.length;
  const svg = make("svg", { viewBox: `0 0 ${width} ${bottom + 86}`, role: "img", "aria-label": `${figure.querySelector("h3").textContent}. The table below has the numbers.` });
  const ends = shown.map((rule) => (rule.free ? [spread(runOf(rule))] : etas.map((eta) => spread(runOf(rule, eta)))));
  const [low, high] = range(ends.flat().map((end) => end.median), ceiling);
  const part = (gap) => (gap > 0 ? Math.log(gap / low) / Math.log(high / low) : 0);
  shown.forEach((rule, r) => {
    const group = make("g", { class: "rule", "data-rule": rule.index }), y = top + row * r, most = width < 600 ? 16 : 20;
    const name = [...rule.name].length > most ? `${[...rule.name].slice(0, most - 1).join("")}…` : rule.name;
    group.append(make("text", { x: names - 8, y: y + 14, "text-anchor": "end" }, name));
    ends[r].forEach(({ median }, k) => {
      if (median === null) return;
      const x = names + column * k, w = rule.free ? right - names : column;
      const cell = make("rect", { class: median === Infinity ? "cell lost" : "cell", x, y, width: w, height: row, "data-eta": rule.free ? "" : k });
      group.append(cell);
      if (median === Infinity) group.append(make("path", { class: "lost-cross", d: `M${x + w / 2 - 3},${y + 7}l6,6m0,-6l-6,6` }));
      else cell.setAttribute("fill", shade(part(median)));
      const where = rule.free ? "no step size" : `eta ${number(etas[k])}`;
      cell.addEventListener("pointermove", (event) => tip(`${rule.name}, ${where}\ngap ${number(median)}`, event.clientX, event.clientY));
      if (!rule.free) cell.addEventListener("click", () => choose(k));
    });
    svg.append(group);
  });
  svg.addEventListener("pointerleave", () => tip(""));
  const frames = ["halo", "here"].map((name) => // one of the two can be seen on every colour
    make("rect", { class: name, y: top, width: column, height: bottom - top, "pointer-events": "none" }));
  svg.append(...frames);
  pointers.map = () => { for (const frame of frames) frame.setAttribute("x", names + column * chosen.eta); };
  pointers.map();
  drawEtas(svg, names, right, bottom, column);
  drawKey(svg, names, right, bottom + 50, low, high);
  host.replaceChildren(svg);
};

const drawEtas = (svg, left, right, bottom, column) => {
  const every = Math.ceil(62 / column);
  etas.forEach((eta, k) => {
    if (k % every === 0) svg.append(make("text", { x: left + column * (k + 0.5), y: bottom + 15, "text-anchor": "middle" }, number(eta)));
  });
  svg.append(make("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, "step size eta"));
};

const drawKey = (svg, left, right, y, low, high) => {
  const pieces = 48, width = (right - left) / pieces;
  for (let k = 0; k < pieces; k++) {
    svg.append(make("rect", { x: left + width * k, y, width: width + 0.5, height: 10, "shape-rendering": "crispEdges", fill: shade(k / (pieces - 1)) }));
  }
  svg.append(make("text", { x: left, y: y + 26 }, number(low)));
  svg.append(make("text", { x: (left + right) / 2, y: y + 26, "text-anchor": "middle" }, data.gap_name));
  svg.append(make("text", { x: right, y: y + 26, "text-anchor": "end" }, number(high)));
};
