// The last decisions with their reasons. A click shows how things stood when one was made.

import { call, of } from "./api.js";
import { find, keyed, make, setText } from "./dom.js";
import { amount, time, words } from "./format.js";

const SHOWN = 12;
let rows = [], bandit = null, isHeld = false, open = null;

export function startDecisions() {
  const hold = find("hold");
  hold.addEventListener("click", () => setHeld(!isHeld));
}

function setHeld(value) {
  isHeld = value;
  find("hold").setAttribute("aria-pressed", String(value));
  setText(find("hold"), value ? "Go on" : "Hold");
  if (!value) {
    open = null;
    show();
  }
}

export function clearDecisions(name) {
  rows = [];
  bandit = name;
  setHeld(false);
}

export function addEvents(events) {
  for (const event of events) {
    if (event.event === "ask") rows.unshift({ ...event, news: null });
    else {
      const row = rows.find(each => each.id === event.id);
      if (row && ["taken", "known"].includes(event.result)) row.news = row.news && event.event === "tell" ? { ...row.news, ...event } : event;
    }
  }
  rows.length = Math.min(rows.length, 200);
  if (!isHeld) show();
}

function outcome({ arm, news }) {
  if (!news) return arm === null ? "" : "waits";
  if (news.event !== "tell") return news.event === "cancel" ? "cancelled" : "expired";
  return [
    news.reward === undefined || news.reward === null ? null : `reward ${amount(Number(news.reward))}`,
    news.cost === undefined || news.cost === null ? null : `cost ${words(news.cost)}`,
  ].filter(Boolean).join(", ");
}

function show() {
  find("decisions-none").hidden = rows.length > 0;
  keyed(find("decisions"), rows.slice(0, SHOWN), row => row.id, create, (item, row) => {
    setText(item.firstChild.lastChild, outcome(row));
  });
}

function create(row) {
  const isOut = row.arm === null;
  const button = make("button", { class: "decision", type: "button", "aria-expanded": "false" },
    make("time", {}, time(row.time)),
    make("span", { class: isOut ? "arm sat" : "arm", title: row.arm }, isOut ? "sat out" : row.arm),
    make("span", { class: "why" }, row.reason),
    make("span", { class: "what" }));
  const item = make("li", {}, button);
  button.addEventListener("click", () => toggle(item, button, row));
  return item;
}

async function toggle(item, button, row) {
  const wasOpen = item === open;
  if (open) {
    open.lastChild.classList.contains("detail") && open.lastChild.remove();
    open.firstChild.setAttribute("aria-expanded", "false");
    open = null;
  }
  if (wasOpen) return;
  setHeld(true);
  open = item;
  button.setAttribute("aria-expanded", "true");
  let pairs;
  try {
    pairs = facts(await call("GET", `${of(bandit)}/decisions/${encodeURIComponent(row.id)}`));
  } catch (error) {
    pairs = [["Not shown", error.message]];
  }
  if (open !== item) return;
  item.append(make("dl", { class: "detail" }, ...pairs.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))));
}

function facts(found) {
  const record = found.record;
  return [
    ["Decision", String(found.id)],
    ["Headroom after it", found.headroom === undefined ? null : words(found.headroom)],
    ["Base", found.situation?.startsWith("base") && found.other ? [found.arm, found.other].filter((name, at, all) => name && all.indexOf(name) === at).join(" and ") : null],
    ["Refused", found.short === null || found.short === undefined ? null : `headroom ${amount(found.short)}${found.resource ? ` of ${found.resource}` : ""} is below the largest cost ${amount(found.largest_cost)}${found.other ? ` of ${found.other}` : ""}`],
    ["Situation", found.situation],
    ["Chance", found.propensity === null || found.propensity === undefined ? null : amount(found.propensity)],
    ["Asked by", found.by],
    ["State", record ? record.state : found.arm === null ? "sat out" : "settled"],
    ["Reward", record && record.reward !== null ? amount(record.reward) : null],
    ["Cost", record && record.cost !== null && words(record.cost) ? words(record.cost) : null],
    ["Expires", record?.deadline ? time(record.deadline) : null],
  ].filter(([, text]) => text !== null && text !== undefined && text !== "");
}
