// Decisions that wait for their outcome, by age, and those charged because no news came.

import { find, keyed, make, setText } from "./dom.js";
import { count, span } from "./format.js";

const NAMES = { "1 s": "under 1 s", "10 s": "to 10 s", "1 min": "to 1 min", "10 min": "to 10 min", "1 h": "to 1 h", "1 day": "to 1 day", longer: "longer" };
const OLD = ["1 day", "longer"];

const words = (waiting, median) => (waiting === 0 ? "decisions: all news is in" : waiting === 1 ? `decision, for ${span(median)}` : `decisions, half of them for ${span(median)} or longer`);

export function showPending(state) {
  const { here } = state, { ages } = here, waiting = here.pending - here.expired;
  const lead = find("pending-lead");
  lead.replaceChildren(make("b", {}, count(waiting)), words(waiting, ages.median));
  const entries = Object.entries(ages.counts), most = Math.max(...entries.map(([, number]) => number), 1);
  const last = entries.findLastIndex(([, number]) => number > 0);
  keyed(find("ages"), entries.slice(0, Math.max(last + 1, 4)), ([name]) => name,
    ([name]) => make("li", { class: OLD.includes(name) ? "old" : null }, make("span", { class: "soft" }, NAMES[name]), make("span", { class: "barline", "aria-hidden": "true" }, make("i")), make("span", { class: "amount" })),
    (row, [, number]) => {
      row.children[1].firstChild.style.setProperty("--part", number / most);
      setText(row.lastChild, count(number));
    });
  const lost = Object.values(here.arms).reduce((sum, arm) => sum + arm.expired, 0);
  setText(find("pending-more"), lost
    ? `${count(lost)} expired so far; ${count(here.expired)} of them stand charged at their largest cost for want of news.`
    : "None has expired; one that does is charged at its largest cost until news comes.");
}
