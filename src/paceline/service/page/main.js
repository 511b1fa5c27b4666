// The page: who is looking, at which bandit, and what is new every second.

import { call, of, token } from "./api.js";
import { showArms, startArms } from "./arms.js";
import { Chart } from "./chart.js";
import { showActs, showControls } from "./controls.js";
import { addEvents, clearDecisions, startDecisions } from "./decisions.js";
import { find, make, setText } from "./dom.js";
import { showGlance } from "./glance.js";
import { notesOf, showNotes } from "./notes.js";
import { showPending } from "./pending.js";
import { follow } from "./stream.js";
import { showWorkers } from "./workers.js";

const chart = new Chart();
let me = null, current = null, stop = null, state = null, isLive = false, again = null;

function showOnly(id) {
  for (const part of ["sign-in", "none", "board"]) find(part).hidden = part !== id;
}

function link(kind, text) {
  find("link").dataset.state = kind;
  setText(find("link-text"), text);
}

const mayChange = () => me?.role === "operator";

async function begin() {
  clearTimeout(again);
  try {
    me = await call("GET", "/whoami");
    setText(find("who"), `${me.label}, ${me.role}`);
    find("sign-out").hidden = !token.get();
    const { bandits } = await call("GET", "/bandits");
    choose(bandits);
  } catch (error) {
    if (error.status === 401) return askForToken(token.get() ? "This token is not known, or was revoked." : "");
    link("bad", error.status ? "Refused" : "Unreachable");
    showNotes([["begin", "bad", "Nothing to see", `${error.message}. The page tries again.`]]);
    again = setTimeout(begin, 3000);
  }
}

function askForToken(wrong) {
  stop?.();
  current = null;
  showOnly("sign-in");
  showNotes([]);
  link("wait", "Signed out");
  setText(find("who"), "");
  find("sign-out").hidden = true;
  setText(find("sign-in-wrong"), wrong);
  find("token").focus();
}

function choose(bandits) {
  if (!bandits.length) return showNone();
  const wanted = decodeURIComponent(location.hash.slice(1));
  const name = bandits.includes(wanted) ? wanted : bandits[0];
  find("bandits").replaceChildren(...bandits.map(each => make("option", { value: each, selected: each === name }, each)));
  find("chooser").hidden = bandits.length < 2;
  open(name);
}

function showNone() {
  showOnly("none");
  showNotes([]);
  link("live", "Live");
  const bearer = token.get() ? ' \\\n  -H "Authorization: Bearer $TOKEN"' : "";
  setText(find("none-example"), `curl -X PUT ${location.origin}/v1/bandits/ads${bearer} \\\n  -H "Content-Type: application/json" \\\n  -d '{"arms": ["banner", "video"], "budget": 0.5,\n       "max_cost": {"banner": 0.2, "video": 1.0}}'`);
  again = setTimeout(begin, 3000);
}

function open(name) {
  stop?.();
  current = name;
  state = null;
  document.title = `${name} · paceline`;
  chart.clear();
  clearDecisions(name);
  find("acts").replaceChildren();
  link("wait", "Connecting");
  stop = follow(`${of(name)}/stream`, {
    onEvent: (kind, value) => name === current && EVENTS[kind]?.(value),
    onLive: () => { isLive = true; },
    onLost: why => {
      isLive = false;
      link("bad", "Reconnecting");
      showNotes([["lost", "bad", "Connection lost", `${why ? `The service says: ${why}` : "The service does not answer"}. What is shown is from before; the page tries again.`], ...(state ? notesOf(state).filter(([id]) => id !== "store") : [])]);
    },
    onRefused: error => (error.status === 401 ? askForToken("This token is not known, or was revoked.") : begin()),
  });
  showActs(name);
}

const EVENTS = {
  history: columns => chart.load(columns),
  state: found => {
    const isFirst = !state;
    if (isFirst) showOnly("board");
    state = found;
    link(found.store.reachable ? "live" : "bad", found.store.reachable ? "Live" : "Store gone");
    showNotes(notesOf(found));
    showGlance(found);
    chart.add(found);
    showArms(found, mayChange() && found.store.reachable);
    showPending(found);
    showWorkers(found, mayChange() && found.store.reachable);
    showControls(found, mayChange());
  },
  events: addEvents,
};

startArms();
startDecisions();
find("bandits").addEventListener("change", event => { location.hash = encodeURIComponent(event.target.value); });
window.addEventListener("hashchange", begin);
find("sign-in-form").addEventListener("submit", event => {
  event.preventDefault();
  token.set(find("token").value.trim());
  find("token").value = "";
  begin();
});
find("sign-out").addEventListener("click", () => {
  token.forget();
  askForToken("");
});
find("acts-box").addEventListener("toggle", () => current && showActs(current));
document.addEventListener("acted", () => current && showActs(current));
begin();
