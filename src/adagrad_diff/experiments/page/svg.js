// What all figures are made of: elements, numbers, scales, markers.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

const html = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children); // text stays text, whatever is in it
  return element;
};

// Three digits, as the tables of the page have them.
const number = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return "diverged";
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-4 && size < 1e5)) return String(Number(value.toPrecision(3)));
  const [mantissa, exponent] = value.toExponential(2).split("e");
  return `${Number(mantissa)}e${Number(exponent)}`;
};

const raised = (exponent) => String(exponent).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);

const power = (exponent) => (exponent >= 0 && exponent <= 3 ? String(10 ** exponent) : `10${raised(exponent)}`);

// Logarithmic: low and high go to from and to; what lies outside is drawn at the edge. With shift 1 it begins at zero.
const logarithmic = (low, high, from, to, shift = 0) => {
  const [a, b] = [Math.log10(low + shift), Math.log10(high + shift)];
  const span = b - a || 1;
  const scale = (value) => {
    const place = value === Infinity ? 1 : value + shift > 0 ? (Math.log10(value + shift) - a) / span : 0;
    return from + (to - from) * Math.min(1, Math.max(0, b > a ? place : 0.5));
  };
  scale.inside = (value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9);
  scale.ticks = (most) => {
    const [first, last] = [Math.ceil(Math.log10(Math.max(low, shift)) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    if (last - first < 1) { // hardly a decade: 1, 2 and 5 times a power of ten
      const fine = [];
      for (let e = first - 1; e <= last; e++) for (const m of [1, 2, 5]) fine.push(m * 10 ** e);
      const seen = fine.filter((value) => scale.inside(value));
      return (seen.length ? seen : [low]).map((value) => [value, number(value)]);
    }
    const every = Math.max(1, Math.ceil((last - first + 1) / most));
    const ticks = [];
    for (let e = last; e >= first; e -= every) ticks.unshift([10 ** e, power(e)]);
    return shift ? [[0, "0"], ...ticks] : ticks;
  };
  return scale;
};

const polygon = (corners, radius, turn, inner = radius) => {
  const points = [];
  const count = inner === radius ? corners : 2 * corners;
  for (let k = 0; k < count; k++) {
    const [angle, r] = [turn + (2 * Math.PI * k) / count, k % 2 && inner !== radius ? inner : radius];
    points.push(`${(r * Math.sin(angle)).toFixed(2)},${(-r * Math.cos(angle)).toFixed(2)}`);
  }
  return `M${points.join("L")}Z`;
};

const plus = "M-1.3,-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z";
const shapes = { // by matplotlib's names of markers
  o: "M-3.4,0A3.4,3.4 0 1 1 3.4,0A3.4,3.4 0 1 1 -3.4,0Z",
  s: "M-3.1,-3.1H3.1V3.1H-3.1Z",
  D: polygon(4, 4.3, 0),
  "^": polygon(3, 4.4, 0),
  v: polygon(3, 4.4, Math.PI),
  "<": polygon(3, 4.4, -Math.PI / 2),
  ">": polygon(3, 4.4, Math.PI / 2),
  p: polygon(5, 4.1, 0),
  h: polygon(6, 3.9, 0),
  "*": polygon(5, 5, 0, 2.1),
  P: plus,
  X: plus,
  x: "M-3.1,-3.1L3.1,3.1M-3.1,3.1L3.1,-3.1",
};

// A marker of style.py, by its name.
const marker = (rule, x, y) => {
  const shape = rule.marker.replace("-open", "");
  const open = rule.marker.endsWith("-open") || shape === "x";
  return make("path", {
    d: shapes[shape] || shapes.o,
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})${shape === "X" ? " rotate(45)" : ""}`,
    class: open ? "mark open" : "mark", stroke: rule.color, "stroke-width": 1.4, ...(open ? {} : { fill: rule.color }),
  });
};
