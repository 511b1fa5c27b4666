// What needs somebody's eyes, in words, above everything else.

import { find, keyed, make, setText } from "./dom.js";
import { byResource, amount, span } from "./format.js";

export function notesOf(state) {
  const notes = [];
  if (!state.store.reachable) {
    notes.push(["store", "bad", "Store unreachable", "Decisions go on with what is known here, and no budget is overdrawn. Controls and learning from other workers wait until it is back."]);
  }
  for (const [name, owed] of Object.entries(byResource(state.here.overdrawn))) {
    if (owed > 0) notes.push([`over-${name}`, "bad", "Overdrawn", `A cost above its largest was told; ${amount(owed)} ${name === "cost" ? "" : name} is repaid before anything is pulled.`]);
  }
  if (state.here.starving) notes.push(["starving", "warn", "Starving", `${state.here.starving}.`]);
  const stale = state.fleet.workers.filter(worker => worker.status === "stale");
  if (stale.length) {
    const oldest = Math.max(...stale.map(worker => state.time - worker.seen));
    notes.push(["stale", "warn", stale.length === 1 ? "A worker is silent" : `${stale.length} workers are silent`, `Not heard of for up to ${span(oldest)}. What they hold is theirs until they are back; nothing is taken from a worker that may live.`]);
  }
  return notes;
}

export function showNotes(notes) {
  keyed(
    find("notes"), notes, note => note[0],
    ([, kind, title]) => make("div", { class: kind === "bad" ? "note bad" : "note" }, make("b", {}, title), make("span")),
    (element, [, , title, text]) => {
      setText(element.firstChild, title);
      setText(element.lastChild, text);
    },
  );
}
