// The workers of the fleet: who is there, and what they hold.

import { call, of } from "./api.js";
import { confirm } from "./confirm.js";
import { find, keyed, make, setText } from "./dom.js";
import { byResource, count, span, words } from "./format.js";

const sum = value => Object.values(byResource(value ?? 0)).reduce((all, each) => all + each, 0);

export function showWorkers(state, may) {
  const rows = state.fleet.workers.filter(worker => worker.status !== "closed");
  const closed = state.fleet.workers.length - rows.length;
  setText(find("workers-count"), `version ${state.fleet.version} of the settings in force at ${state.fleet.in_force}`);
  keyed(find("workers").tBodies[0], rows, row => `${row.name} ${row.life}`, create, (row, worker) => {
    const [name, seen, rounds, holds, act] = row.children;
    setText(name.firstChild, worker.name === state.worker ? `${worker.name} (this one)` : worker.name);
    name.lastChild.hidden = !state.store.reachable;  // nobody knows now
    name.lastChild.className = `tag ${worker.status}`;
    setText(name.lastChild, worker.status);
    const age = Math.max(state.time - worker.seen, 0);
    setText(seen, age < 2 ? "now" : `${span(age)} ago`);
    setText(rounds, count(worker.rounds));
    setText(holds, words(worker.headroom));
    const isStale = worker.status === "stale";
    holds.className = isStale ? "number stranded" : "number";
    holds.title = isStale ? `stranded unless it comes back: ${words(worker.headroom)}, and ${words(worker.reserved)} reserved` : `reserved besides: ${words(worker.reserved)}`;
    const button = act.firstChild;
    button.hidden = !isStale;
    button.disabled = !may;
    button.onclick = () => close(state.name, worker);
  });
  const stranded = rows.filter(row => row.status === "stale" && sum(row.headroom) + sum(row.reserved) > 0);
  setText(find("workers-more"), [
    stranded.length ? `Stranded: ${stranded.map(row => words(row.headroom)).join(" and ")}.` : "",
    closed ? `${count(closed)} closed.` : "",
  ].join(" ").trim());
  find("workers-more").hidden = !find("workers-more").textContent;
}

function create() {
  return make("tr", {}, make("th", { scope: "row" }, make("span"), make("span", { class: "tag" })), make("td", { class: "number when" }), make("td", { class: "number" }), make("td", { class: "number" }), make("td", { class: "act" }, make("button", { type: "button", class: "quiet slim" }, "Close")));
}

const close = (bandit, worker) => confirm({
  title: `Close ${worker.name}?`, yes: "It is dead: close it", danger: true,
  text: `You assert that this worker is dead. News of its decisions goes to the others from now on, and still teaches. Its money stays where it was: ${words(worker.headroom)} held and ${words(worker.reserved)} reserved. If it lives after all, it goes on by its own line, and its next exchange opens it again.`,
  act: () => call("POST", `${of(bandit)}/workers/${encodeURIComponent(worker.name)}/close`, { life: String(worker.life) }),
  done: `${worker.name} is closed.`,
});
