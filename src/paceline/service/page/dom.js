// Elements from plain values. Texts are set as texts: no name of an arm can become markup.

export const find = id => document.getElementById(id);

// An element: make("td", { class: "number" }, "12"). Values of --properties go through the style object.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Keep the children of a parent in step with a list, by key: what stays keeps its focus.
export function keyed(parent, items, keyOf, create, update) {
  const old = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = old.get(key);
    if (child) old.delete(key);
    else {
      child = create(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

export function toast(text) {
  const note = make("div", { class: "toast" }, text);
  find("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}
