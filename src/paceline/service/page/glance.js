// The head of the page: five figures.

import { find, keyed, make, setText } from "./dom.js";
import { amount, byResource, count, leftOf, leftWith, percent } from "./format.js";

const NAMES = { rounds: "Rounds", money: "Spent and reserved", headroom: "Headroom", price: "Price", workers: "Workers" };
const HINTS = { price: "what one more unit per round would earn" };

export function showGlance(state) {
  const { fleet } = state, resources = state.resources;
  setText(find("title"), state.name);
  keyed(find("figures"), Object.keys(NAMES), name => name, create, (box, name) => {
    box.className = `${name === "money" ? "wide " : ""}${resources.length > 1 && name !== "rounds" && name !== "workers" ? "several" : ""}`;
    fill(box, FILL[name](fleet, resources, state));
  });
}

function create(name) {
  return make("div", {}, make("dt", { title: HINTS[name] }, NAMES[name]));
}

// Replaces the figures of a box, but only where something has changed.
function fill(box, parts) {
  const key = JSON.stringify(parts.map(part => [part.text, part.small, part.extra, part.kind, part.bars]));
  if (box.dataset.shown === key) return;
  box.dataset.shown = key;
  while (box.children.length > 1) box.lastChild.remove();
  for (const part of parts) {
    if (part.bars) box.append(make("dd", { class: "extra", "aria-hidden": "true" }, bars(part.bars)));
    else if (part.extra) box.append(make("dd", { class: `extra ${part.kind ?? ""}` }, part.extra));
    else box.append(make("dd", { class: part.kind }, part.text, part.small ? make("small", {}, ` ${part.small}`) : null));
  }
}

function bars([spent, reserved]) {
  return make("div", { class: "meter" }, make("i", { "--part": spent }), make("i", { "--part": reserved }));
}

const labelled = (resources, name) => (resources.length > 1 ? name : "");

const FILL = {
  rounds: fleet => [{ text: count(fleet.rounds) }, { extra: `earned ${amount(fleet.earned)}` }],
  money: (fleet, resources) => resources.flatMap(name => {
    const spent = byResource(fleet.spent)[name], reserved = byResource(fleet.reserved)[name];
    const credited = byResource(fleet.credited)[name], whole = Math.max(credited, spent + reserved, 1e-300);
    const figures = [
      { text: amount(spent + reserved), small: `of ${amount(credited)} ${labelled(resources, name)}` },
      { bars: [spent / whole, reserved / whole] },
    ];
    return resources.length > 1 ? figures : [...figures, { extra: `${amount(spent)} spent (${percent(spent / whole)}), ${amount(reserved)} reserved` }];
  }),
  headroom: (fleet, resources) => {
    const left = leftOf(fleet), pool = byResource(fleet.pool);
    const parts = resources.map(name => ({ text: amount(left[name]), small: labelled(resources, name), kind: left[name] < 0 ? "bad-text" : "" }));
    const shows = (name, part) => part > 0 && part >= 1e-4 * left[name]; // not what is rounded off above
    const listed = amounts => resources.filter(name => shows(name, amounts[name])).map(name => `${amount(amounts[name])} ${labelled(resources, name)}`.trim()).join(", ");
    const pooled = listed(pool), stranded = listed(byResource(leftWith(fleet, ["stale", "closed"])));
    const extra = [pooled && `${pooled} of it in the pool`, stranded && `${stranded} of it stranded`].filter(Boolean);
    return [...parts, { extra: extra.join("; ") || "may still be spent" }];
  },
  price: (fleet, resources) => {
    const isKnown = Object.values(fleet.arms).some(arm => arm.pulls > 0);
    const parts = resources.map(name => ({ text: amount(isKnown ? byResource(fleet.price)[name] : null), small: labelled(resources, name) }));
    return [...parts, { extra: isKnown ? "reward per unit" : "nothing is known yet" }];
  },
  workers: (fleet, _, state) => {
    const of = status => fleet.workers.filter(worker => worker.status === status).length;
    const stale = of("stale");
    if (!state.store.reachable) return [{ text: count(of("fresh") + stale), small: "before" }, { extra: "nobody knows now" }];
    return [
      { text: count(of("fresh")), small: "fresh" },
      { extra: stale ? `${stale} stale` : `settings at ${fleet.in_force}`, kind: stale ? "warn-text" : "" },
    ];
  },
};
