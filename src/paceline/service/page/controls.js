// Credit, budget, a new arm: for operators, each confirmed and logged.

import { call, of } from "./api.js";
import { confirm } from "./confirm.js";
import { find, keyed, make, setText } from "./dom.js";
import { amount, byResource, day, leftOf, words } from "./format.js";

const SHOWN = 50, PAGE = 1000; // acts
let state = null, shape = null;

const number = text => (text.trim() === "" ? null : Number(text));
const isNamed = () => !(state.resources.length === 1 && state.resources[0] === "cost");

// What the fields of a form say: a number, or numbers by resource.
function given(form) {
  const values = Object.fromEntries([...form.querySelectorAll("[data-resource]")].map(field => [field.dataset.resource, number(field.value)]).filter(([, value]) => value !== null));
  return isNamed() ? values : values.cost;
}

function fields(label, least) {
  return state.resources.map(name => make("label", {}, isNamed() ? `${label}: ${name}` : label, make("input", { type: "number", min: least, step: "any", inputmode: "decimal", required: state.resources.length === 1, "data-resource": name })));
}

function control(id, title, text, inputs, button, submit) {
  const form = make("form", { class: "card control", id }, make("h3", {}, title), make("p", {}, text), make("fieldset", {}, ...inputs, make("button", { class: "quiet", type: "submit" }, button)));
  form.addEventListener("submit", async event => {
    event.preventDefault();
    if (await submit(form)) form.reset();
  });
  return form;
}

export function showControls(found, may) {
  state = found;
  const wanted = `${state.name} ${state.resources.join()}`;
  if (shape !== wanted) {
    shape = wanted;
    find("controls").replaceChildren(credit(), budget(), arm());
  }
  for (const field of find("control-budget").querySelectorAll("[data-resource]")) field.placeholder = `now ${amount(byResource(state.fleet.budget)[field.dataset.resource])}`;
  for (const set of find("controls").querySelectorAll("fieldset")) set.disabled = !may || !state.store.reachable;
  setText(find("controls-note"), !may ? "your token may look, not change" : state.store.reachable ? "each asks first, and is logged" : "they wait for the store");
}

const credit = () => control("control-credit", "Credit", "Money that comes in at once, besides the budget of each round.", fields("Amount", "0"), "Credit…", form => {
  const value = given(form), key = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
  const lines = Object.entries(byResource(value)).map(([name, more]) => `${isNamed() ? `${name}: h` : "H"}eadroom goes from ${amount(leftOf(state.fleet)[name])} to ${amount(leftOf(state.fleet)[name] + more)}.`);
  return confirm({
    title: `Credit ${words(value)} to ${state.name}?`, text: lines.join("\n"), yes: `Credit ${words(value)}`,
    act: () => call("POST", `${of(state.name)}/credit`, { amount: value }, { "Idempotency-Key": key }), done: `${words(value)} credited to ${state.name}.`,
  });
});

const budget = () => control("control-budget", "Budget", "Income per round from now on. What has come in so far stays.", fields("Per round", "0"), "Change…", form => {
  const value = given(form);
  return confirm({
    title: `Budget of ${words(value)} a round?`, text: "Each worker goes by it from its next sync on.", yes: "Change it",
    act: () => call("PATCH", of(state.name), { budget: value }), done: `The budget of ${state.name} is ${words(value)} a round.`,
  });
});

const arm = () => control("control-arm", "New arm", "A name that no arm has, and the most that a pull of it can cost.", [
  make("label", {}, "Name", make("input", { name: "arm", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false" })),
  ...fields("Largest cost", "0"),
], "Add…", form => {
  const name = form.elements.arm.value.trim(), most = given(form);
  return confirm({
    title: `Add ${name}?`, text: "It is in play at once, and nothing is known of it yet: it will be tried.", yes: "Add it",
    act: () => call("POST", `${of(state.name)}/arms/${encodeURIComponent(name)}`, most === undefined ? {} : { max_cost: most }), done: `${name} is in play.`,
  });
});

const VERBS = {
  make: () => "made the bandit", credit: what => `credited ${words(what)}`, add: what => `added ${what.arm ?? what}`, pause: what => `paused ${what}`,
  resume: what => `resumed ${what}`, retire: what => `retired ${what}`, set: what => `set ${Object.entries(what).map(([name, value]) => `${name} ${typeof value === "number" || (typeof value === "object" && value) ? words(value) : value}`).join(", ")}`,
};

const said = what => Object.entries(what).map(([verb, detail]) => VERBS[verb]?.(detail) ?? `${verb} ${typeof detail === "object" ? JSON.stringify(detail) : detail}`).join("; ");

// The latest acts, if somebody looks at them. The service lists them from the oldest on.
let acts = [], actsOf = null;

export async function showActs(name) {
  if (!find("acts-box").open) return;
  if (actsOf !== name) [acts, actsOf] = [[], name];
  try {
    for (let more = PAGE; more === PAGE;) {
      const found = (await call("GET", `${of(name)}/acts?after=${acts.at(-1)?.number ?? 0}&count=${PAGE}`)).acts;
      if (actsOf !== name) return;
      more = found.length;
      const last = acts.at(-1)?.number ?? 0;  // somebody else may have looked meanwhile
      acts = [...acts, ...found.filter(act => act.number > last)].slice(-SHOWN);
    }
  } catch { return; }
  keyed(find("acts"), [...acts].reverse(), act => act.number,
    act => make("li", {}, make("time", {}, day(act.time)), make("span", { class: "by" }, act.by), make("span", { class: "what" }, said(act.what))), () => {});
}
