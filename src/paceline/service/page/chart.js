// Spending against the line, and the headroom below it.

import { find, make, setText } from "./dom.js";
import { amount, byResource, count, time } from "./format.js";

const RANGES = { "2 min": 120, "10 min": 600, All: Infinity };
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const MOST = 4000; // points kept in the page
const SHORTEST = 10; // seconds that are shown at least
const fromZero = room => (_, low, high) => [Math.min(low, 0), high > 0 ? high * room : 1]; // an area without its foot would deceive

export class Chart {
  constructor() {
    this.range = "10 min";
    this.resource = null;
    this.clear();
    const buttons = Object.keys(RANGES).map(name => make("button", { type: "button", onclick: () => this.choose("range", name) }, name));
    find("ranges").replaceChildren(...buttons);
    this.mark();
    new ResizeObserver(() => this.resize()).observe(find("plot"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  clear() {
    this.times = [];
    this.rounds = [];
    this.amounts = {};
    this.remove();
  }

  remove() {
    this.main?.destroy();
    this.small?.destroy();
    this.main = this.small = null;
  }

  choose(what, name) {
    this[what] = name;
    this.mark();
    this.rebuild();
  }

  mark() {
    for (const [box, chosen] of [["ranges", this.range], ["resources", this.resource]]) {
      for (const button of find(box).children) button.setAttribute("aria-pressed", String(button.textContent === chosen));
    }
  }

  setResources(names) {
    if (this.resource && names.includes(this.resource) && this.names?.join() === names.join()) return;
    this.names = names;
    this.resource = names[0];
    find("resources").hidden = names.length < 2;
    find("resources").replaceChildren(...names.map(name => make("button", { type: "button", onclick: () => this.choose("resource", name) }, name)));
    this.mark();
  }

  load(columns) {
    this.clear();
    this.times = columns.time;
    this.rounds = columns.rounds;
    this.amounts = columns.resources;
    this.setResources(Object.keys(columns.resources));
    this.draw();
  }

  add(state) {
    this.setResources(state.resources);
    if (state.time <= (this.times.at(-1) ?? 0)) return;
    this.times.push(state.time);
    this.rounds.push(state.fleet.rounds);
    for (const name of state.resources) {
      const columns = (this.amounts[name] ??= { credited: [], spent: [], reserved: [] });
      for (const part of Object.keys(columns)) columns[part].push(byResource(state.fleet[part])[name]);
    }
    if (this.times.length > MOST) {
      for (const column of [this.times, this.rounds, ...Object.values(this.amounts).flatMap(Object.values)]) column.splice(0, MOST / 4);
    }
    this.draw();
  }

  data() {
    const columns = this.amounts[this.resource];
    if (!columns) return null;
    const from = this.times.at(-1) - RANGES[this.range];
    let first = this.times.findIndex(moment => moment >= from);
    first = Math.max(Math.min(first, this.times.length - 2), 0);
    const cut = column => column.slice(first);
    const spent = cut(columns.spent), reserved = cut(columns.reserved), credited = cut(columns.credited);
    const used = spent.map((value, at) => value + reserved[at]);
    return { first, main: [cut(this.times), used, spent, credited], small: [cut(this.times), credited.map((value, at) => value - used[at])] };
  }

  draw() {
    const enough = this.times.length > 1 && this.amounts[this.resource]?.credited.at(-1) > 0;
    find("plot-wait").hidden = enough;
    for (const id of ["plot", "headroom-title", "plot-headroom"]) find(id).hidden = !enough;
    if (!enough) return;
    const data = this.data();
    this.first = data.first;
    if (!this.main) this.build(data);
    else {
      this.main.setData(data.main);
      this.small.setData(data.small);
    }
    const at = data.main[0].length - 1;
    find("plot").setAttribute("aria-label", `Spending over time: now ${amount(data.main[2][at])} spent and ${amount(data.main[1][at] - data.main[2][at])} reserved of ${amount(data.main[3][at])} credited`);
    find("plot-headroom").setAttribute("aria-label", `Headroom over time: now ${amount(data.small[1][at])}`);
    if (this.main.cursor.idx === null || this.main.cursor.idx === undefined) this.read(null);
  }

  build(data) {
    const width = find("plot").clientWidth, ink = colour("ink"), soft = colour("soft"), rule = colour("rule");
    const axis = { stroke: soft, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font: "12px ui-sans-serif, system-ui, sans-serif" };
    const xAxis = { ...axis, grid: { show: false }, space: 90, size: 30, gap: 6, values: (_, all) => all.map(each => time(each).slice(0, all.at(-1) - all[0] < 60 * all.length ? 8 : 5)) };
    const yAxis = { ...axis, size: 58, gap: 8, values: (_, all) => all.map(tick) };
    const common = { width, legend: { show: false }, padding: [10, 30, 0, 0], cursor: { sync: { key: "paceline", setSeries: false }, drag: { x: false, y: false }, points: { size: 7 } } };
    const steps = uPlot.paths.linear(), times = { range: (_, low, high) => [Math.min(low, high - SHORTEST), high] };
    this.main = new uPlot({
      ...common, height: 260,
      scales: { x: times, y: { range: fromZero(1.06) } },
      axes: [xAxis, yAxis],
      series: [
        {},
        { stroke: colour("blue-soft"), width: 1, fill: colour("blue-soft"), paths: steps, points: { show: false } },
        { stroke: colour("blue"), width: 1.5, fill: colour("blue-wash"), paths: steps, points: { show: false } },
        { stroke: ink, width: 1.75, paths: steps, points: { show: false } }, // last: nothing lies over the line
      ],
      hooks: { setCursor: [plot => this.read(plot.cursor.idx)] },
    }, data.main, find("plot"));
    this.small = new uPlot({
      ...common, height: 96, padding: [8, 30, 10, 0],
      scales: { x: times, y: { range: fromZero(1.15) } },
      axes: [{ ...xAxis, show: false }, { ...yAxis, space: 26 }],
      series: [{}, { stroke: colour("blue"), width: 1.25, fill: colour("blue-wash"), paths: steps, points: { show: false } }],
    }, data.small, find("plot-headroom"));
  }

  // What stands under the pointer, or the latest.
  read(at) {
    const data = this.main?.data;
    if (!data || !data[0].length) return;
    const index = at ?? data[0].length - 1;
    setText(find("readout"), `${time(data[0][index])} · round ${count(this.rounds[this.first + index])} · ${amount(data[1][index])} of ${amount(data[3][index])}`);
  }

  resize() {
    const width = find("plot").clientWidth;
    if (!this.main || !width || width === this.main.width) return;
    this.main.setSize({ width, height: 260 });
    this.small.setSize({ width, height: 96 });
  }

  rebuild() {
    this.remove();
    this.draw();
  }
}

const tick = value => (Math.abs(value) >= 1e4 ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 2 }) : value.toLocaleString("en", { maximumFractionDigits: 4 }));
