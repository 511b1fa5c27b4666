// The workers of the fleet: who is there, and what they hold.

import { call, of } from "./api.js";
import { confirm } from "./confirm.js";
import { find, keyed, make, setText } from "./dom.js";
import { count, leftWith, span, words } from "./format.js";

export function showWorkers(state, may) {
  const rows = state.fleet.workers.filter(worker => worker.status !== "closed");
  setText(find("workers-count"), `version ${state.fleet.version} of the settings in force at ${state.fleet.in_force}`);
  keyed(find("workers").tBodies[0], rows, row => `${row.name} ${row.life}`, create, (row, worker) => {
    const [name, seen, rounds, holds, act] = row.children;
    setText(name.firstChild, worker.name === state.worker ? `${worker.name} (this one)` : worker.name);
    name.lastChild.hidden = !state.store.reachable;  // nobody knows now
    name.lastChild.className = `tag ${worker.status}`;
    setText(name.lastChild, worker.status);
    const age = Math.max(state.time - worker.seen, 0);
    setText(seen.lastChild, age < 2 ? "now" : `${span(age)} ago`);
    setText(rounds.lastChild, count(worker.rounds));
    setText(holds.lastChild, words(worker.headroom));
    const isStale = worker.status === "stale";
    holds.className = isStale ? "number stranded" : "number";
    holds.title = isStale ? `stranded unless it comes back: ${words(worker.headroom)}, and ${words(worker.reserved)} reserved` : `reserved besides: ${words(worker.reserved)}`;
    const button = act.firstChild;
    button.hidden = !isStale;
    button.disabled = !may;
    button.onclick = () => close(state.name, worker);
  });
  setText(find("workers-more"), [strandedWith(state.fleet, "stale", "silent"), strandedWith(state.fleet, "closed", "closed")].filter(Boolean).join(" "));
  find("workers-more").hidden = !find("workers-more").textContent;
}

// What is stranded with workers that are not there.
function strandedWith(fleet, status, word) {
  const those = fleet.workers.filter(worker => worker.status === status).length;
  return those ? `Stranded with ${count(those)} ${word}: ${words(leftWith(fleet, [status]))}.` : "";
}

function create() {
  const cell = (name, kind = "") => make("td", { class: `number ${kind}` }, make("span", { class: "label", "aria-hidden": "true" }, name), make("span"));
  return make("tr", {},
    make("th", { scope: "row" }, make("span"), make("span", { class: "tag" })),
    cell("Seen", "when"), cell("Rounds"), cell("Holds"),
    make("td", { class: "act" }, make("button", { type: "button", class: "quiet slim" }, "Close")));
}

const close = (bandit, worker) => confirm({
  title: `Close ${worker.name}?`, yes: "It is dead: close it", danger: true,
  text: `You assert that this worker is dead. News of its decisions goes to the others from now on, and still teaches. Its money stays where it was: ${words(worker.headroom)} held and ${words(worker.reserved)} reserved. If it lives after all, it goes on by its own line, and its next exchange opens it again.`,
  act: () => call("POST", `${of(bandit)}/workers/${encodeURIComponent(worker.name)}/close`, { life: String(worker.life) }),
  done: `${worker.name} is closed.`,
});
