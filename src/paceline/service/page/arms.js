// The arms: what is known of each, how often it is chosen and should be, and a button.

import { call, of } from "./api.js";
import { confirm } from "./confirm.js";
import { find, keyed, make, setText } from "./dom.js";
import { amount, count, percent } from "./format.js";

const COLUMNS = [
  ["arm", "Arm", ([name]) => name.toLowerCase()],
  ["pulls", "Pulls", ([, arm]) => arm.pulls],
  ["reward", "Reward", ([, arm]) => arm.reward.mean],
  ["cost", "Cost", ([, arm]) => Object.values(costs(arm))[0].mean],
  ["share", "Share", ([, arm]) => arm.share],
];
const MANY = 12; // arms above which there is a filter
const ORDER = { active: 0, paused: 1, retired: 2 };
const sort = { by: null, down: true };
let last = null;

const isInterval = value => "mean" in value;
const costs = arm => (isInterval(arm.cost) ? { "": arm.cost } : arm.cost);

export function startArms() {
  const heads = COLUMNS.map(([id, title]) => make("th", { scope: "col", class: `w-${id}${id === "pulls" ? " number" : ""}`, id: `arms-${id}` }, make("button", { type: "button", onclick: () => choose(id) }, title)));
  find("arms-head").replaceChildren(...heads, make("th", { scope: "col", class: "w-act act" }, make("span", { class: "unseen" }, "Pause or resume")));
  find("arms-filter").addEventListener("input", () => last && showArms(last.state, last.may));
}

function choose(id) {
  sort.down = sort.by === id ? !sort.down : id !== "arm";
  sort.by = id;
  for (const [each] of COLUMNS) {
    const head = find(`arms-${each}`);
    if (each === id) head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  showArms(last.state, last.may);
}

export function showArms(state, may) {
  last = { state, may };
  const all = Object.entries(state.fleet.arms);
  const active = all.filter(([, arm]) => arm.status === "active").length;
  setText(find("arms-count"), active === all.length ? `${active} in play` : `${active} of ${all.length} in play`);
  find("arms-filter-box").hidden = all.length <= MANY;
  const wanted = all.length > MANY ? find("arms-filter").value.toLowerCase() : "";
  const shown = all.filter(([name]) => name.toLowerCase().includes(wanted));
  const value = COLUMNS.find(([id]) => id === sort.by)?.[2];
  shown.sort((one, other) => {
    if (!value) return ORDER[one[1].status] - ORDER[other[1].status];
    const [a, b] = [value(one), value(other)];
    return (a < b ? -1 : a > b ? 1 : 0) * (sort.down ? -1 : 1);
  });
  const most = scales(all), mixed = all.reduce((sum, [, arm]) => sum + arm.best_mix, 0);  // less than 1 with rounds sat out
  find("arms").classList.toggle("dense", all.length > MANY);
  find("arms-none").hidden = shown.length > 0;
  keyed(find("arms").tBodies[0], shown, ([name]) => name, create, (row, [name, arm]) => update(row, name, arm, most, mixed, state.name, may));
}

// The largest bounds, so that intervals of different arms can be compared.
function scales(all) {
  const most = { reward: 0, cost: {} };
  for (const [, arm] of all) {
    most.reward = Math.max(most.reward, arm.reward.high);
    for (const [name, each] of Object.entries(costs(arm))) most.cost[name] = Math.max(most.cost[name] ?? 0, each.high);
  }
  return most;
}

function create([name, arm]) {
  const label = text => make("span", { class: "label", "aria-hidden": "true" }, text);
  const several = Object.keys(costs(arm));
  return make("tr", {},
    make("th", { scope: "row" }, name, make("span", { class: "tag", hidden: true })),
    make("td", { class: "number" }, label("Pulls"), make("span")),
    make("td", {}, label("Reward"), make("div", {}, estimate(""))),
    make("td", {}, label("Cost"), make("div", {}, ...several.map(estimate))),
    make("td", {}, label("Share"), make("div", { class: "shares" },
      make("div", { class: "barline", "aria-hidden": "true" }, make("i")), make("span", { class: "amount", title: "share of the pulls lately" }),
      make("div", { class: "barline best", "aria-hidden": "true" }, make("i")), make("span", { class: "amount best", title: "share of the pulls in the best mix, if the arms are what they seem to be" }))),
    make("td", { class: "act" }, make("button", { type: "button", class: "quiet slim" })),
  );
}

function estimate(name) {
  return make("div", { class: "estimate" }, name ? make("span", { class: "of" }, name) : null, make("b"), make("span", { class: "unseen" }), make("div", { class: "track", "aria-hidden": "true" }, make("i"), make("em")));
}

function update(row, name, arm, most, mixed, bandit, may) {
  const [head, pulls, reward, cost, share, act] = row.children;
  row.className = arm.status === "active" ? "" : "out";
  const tag = head.lastChild;
  tag.hidden = arm.status === "active";
  tag.className = `tag ${arm.status}`;
  setText(tag, arm.status);
  setText(pulls.lastChild, count(arm.pulls));
  showEstimate(reward.lastChild.firstChild, arm.reward, most.reward, arm.pulls);
  Object.entries(costs(arm)).forEach(([each, interval], at) => showEstimate(cost.lastChild.children[at], interval, most.cost[each], arm.pulls));
  const [now, nowText, best, bestText] = share.lastChild.children;
  now.firstChild.style.setProperty("--part", arm.share);
  const part = mixed > 0 ? arm.best_mix / mixed : 0;  // of the pulls, as the share beside it
  best.firstChild.style.setProperty("--part", part);
  best.firstChild.className = arm.best_mix > 0 ? "" : "nothing";
  setText(nowText, `${percent(arm.share)} now`);
  setText(bestText, mixed > 0 ? `${percent(part)} best` : "– best");
  const button = act.firstChild;
  button.hidden = arm.status === "retired";
  button.disabled = !may;
  button.title = may ? "" : "an operator may";
  setText(button, arm.status === "paused" ? "Resume" : "Pause");
  button.setAttribute("aria-label", `${button.textContent} ${name}`);
  button.onclick = () => (arm.status === "paused" ? resume : pause)(bandit, name);
}

function showEstimate(box, interval, most, pulls) {
  const [text, track] = [box.querySelector("b"), box.querySelector(".track")];
  setText(text, pulls ? amount(interval.mean) : "–");
  const surely = `surely (95 %) from ${amount(interval.low)} to ${amount(interval.high)}`;
  setText(box.querySelector(".unseen"), pulls ? surely : "nothing is known yet");
  box.title = pulls ? `${amount(interval.mean)}; ${surely}` : "nothing is known yet";
  for (const part of ["low", "mean", "high"]) track.style.setProperty(`--${part}`, most > 0 ? Math.min(Math.max(interval[part] / most, 0), 1) : 0);
  track.lastChild.hidden = !pulls;
}

const change = (bandit, arm, status) => () => call("PATCH", `${of(bandit)}/arms/${encodeURIComponent(arm)}`, { status });

const pause = (bandit, arm) => confirm({
  title: `Pause ${arm}?`, yes: "Pause it", act: change(bandit, arm, "paused"), done: `${arm} is paused.`,
  text: "No new decision is for it, at each worker from its next sync on. Outcomes of earlier ones are still taken in, and what was learned is kept.",
});

const resume = (bandit, arm) => confirm({
  title: `Resume ${arm}?`, yes: "Resume it", act: change(bandit, arm, "active"), done: `${arm} is in play again.`,
  text: "It may be chosen again, with all that it has taught.",
});
