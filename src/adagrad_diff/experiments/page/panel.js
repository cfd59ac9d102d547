// A frame with two logarithmic axes, in which lines, bands and points are drawn; and the tip that says what is under the pointer.

const margin = { top: 26, right: 10, bottom: 38, left: 48 };

class Panel {
  // strip: room on the right for what has no place on the horizontal axis.
  constructor(figure, { label, describe, x, y, shift = 0, across, up, strip = 0 }) {
    this.host = figure.querySelector(".drawing");
    this.width = Math.max(260, Math.round(this.host.clientWidth || 900));
    this.height = Math.round(Math.min(400, Math.max(300, 0.5 * this.width)));
    this.right = this.width - margin.right - (strip ? strip + 14 : 0);
    this.bottom = this.height - margin.bottom;
    this.x = logarithmic(...x, margin.left + 6, this.right - 6, shift);
    this.y = logarithmic(...y, this.bottom, margin.top);
    this.points = [];
    this.ground = make("g");
    this.svg = make("svg", { viewBox: `0 0 ${this.width} ${this.height}`, role: "img", "aria-label": `${label}. ${describe}` });
    this.frame(across, up, strip);
  }

  frame(across, up, strip) {
    const { left, top } = margin;
    for (const [value, text] of this.y.ticks(8)) {
      const y = this.y(value);
      this.svg.append(make("path", { class: "grid", d: `M${left},${y}H${this.right}` }));
      this.svg.append(make("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, text));
    }
    for (const [value, text] of this.x.ticks(Math.max(3, Math.floor(this.width / 70)))) {
      const x = this.x(value);
      this.svg.append(make("path", { class: "grid", d: `M${x},${top}V${this.bottom}` }));
      this.svg.append(make("text", { x, y: this.bottom + 16, "text-anchor": "middle" }, text));
    }
    this.svg.append(make("path", { class: "axis", d: `M${left},${top}V${this.bottom}H${this.right}` }));
    if (strip) {
      const middle = this.right + 14 + strip / 2;
      this.svg.append(make("rect", { class: "grid", x: this.right + 14, y: top, width: strip, height: this.bottom - top }));
      this.svg.append(make("text", { x: Math.min(middle, this.width - 36), y: this.bottom + 16, "text-anchor": "middle" }, "no step size"));
    }
    this.svg.append(this.ground, make("text", { x: 0, y: 14 }, up));
    this.svg.append(make("text", { x: (left + this.right) / 2, y: this.height - 4, "text-anchor": "middle" }, across));
  }

  // One rule: a group that can be lifted out of the others.
  group(index) {
    const group = make("g", { class: "rule", "data-rule": index });
    this.svg.append(group);
    return group;
  }

  // Bands lie under the lines of all rules, and the fainter the more of them there are: in one place they may all lie on each other.
  band(rule, xs, low, high, count) {
    const group = make("g", { class: "rule under", "data-rule": rule.index }), faint = Math.min(0.16, 0.8 / count);
    this.ground.append(group);
    for (const [from, to] of unbroken(low)) {
      const there = [], back = [];
      for (let k = from; k < to; k++) {
        const x = this.x(xs[k]).toFixed(1);
        there.push(`${x},${this.y(low[k]).toFixed(1)}`);
        back.unshift(`${x},${this.y(high[k] ?? Infinity).toFixed(1)}`);
      }
      group.append(make("path", { class: "band", d: `M${[...there, ...back].join("L")}Z`, fill: rule.color, "fill-opacity": faint }));
    }
  }

  line(group, rule, xs, ys) {
    for (const [from, to] of unbroken(ys)) {
      const points = xs.slice(from, to).map((x, k) => `${this.x(x).toFixed(1)},${this.y(ys[from + k]).toFixed(1)}`);
      group.append(make("path", {
        class: "line", d: `M${points.join("L")}`, fill: "none", stroke: rule.color, "stroke-width": rule.paper ? 2.6 : 1.5,
        "stroke-dasharray": rule.dash.join(" ") || "none", "stroke-linejoin": "round",
      }));
    }
  }

  mark(group, rule, x, y) { group.append(marker(rule, x, y)); }

  // What the tip says near a place.
  remember(x, y, index, text, value) { this.points.push({ x, y, index, text, value }); }

  show() {
    this.host.replaceChildren(this.svg);
    const at = (event) => {
      const box = this.svg.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((place) => (place * this.width) / box.width);
      let best = null, least = 30 ** 2;
      for (const point of this.points) {
        const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
        if (distance < least) [best, least] = [point, distance];
      }
      return [best, x, y];
    };
    this.svg.addEventListener("pointermove", (event) => {
      const [best] = at(event);
      lift(best ? best.index : null);
      tip(best ? best.text : "", event.clientX, event.clientY);
    });
    this.svg.addEventListener("pointerleave", () => { lift(null); tip(""); });
    if (this.click) this.svg.addEventListener("click", (event) => this.click(...at(event)));
  }
}

// Stretches of numbers without a gap: null and Infinity break a line.
const unbroken = (values) => {
  const stretches = [];
  let from = 0;
  for (let k = 0; k <= values.length; k++) {
    if (k < values.length && Number.isFinite(values[k])) continue;
    if (k > from) stretches.push([from, k]);
    from = k + 1;
  }
  return stretches;
};

const tip = (text, x = 0, y = 0) => {
  const box = document.getElementById("tip");
  box.hidden = !text;
  box.textContent = text;
  if (!text) return;
  const { offsetWidth: width, offsetHeight: height } = box;
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - width - 8))}px`;
  box.style.top = `${y + 18 + height > window.innerHeight ? y - height - 12 : y + 18}px`;
};

// One rule stands out, the others step back; null: all as usual.
const lift = (index) => {
  for (const svg of document.querySelectorAll(".drawing svg")) {
    svg.classList.toggle("one-only", index !== null);
    for (const group of svg.querySelectorAll(".rule")) group.classList.toggle("chosen", Number(group.dataset.rule) === index);
  }
};
