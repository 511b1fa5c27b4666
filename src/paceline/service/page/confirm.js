// Every control asks first, and says what happened.

import { find, toast } from "./dom.js";

// Asks, does it, and stays open with the reason if it was refused. Resolves to whether it was done.
export function confirm({ title, text, yes, danger = false, act, done }) {
  const dialog = find("confirm"), button = find("confirm-yes"), wrong = find("confirm-wrong");
  find("confirm-title").textContent = title;
  find("confirm-text").textContent = text;
  wrong.textContent = "";
  button.textContent = yes;
  button.className = danger ? "main danger" : "main";
  button.disabled = false;
  return new Promise(resolve => {
    let isDone = false;
    find("confirm-no").onclick = () => dialog.close();
    button.onclick = async () => {
      button.disabled = true;
      wrong.textContent = "";
      try {
        const answer = await act();
        isDone = true;
        dialog.close();
        toast(typeof done === "function" ? done(answer) : done);
      } catch (error) {
        wrong.textContent = error.status === 403 ? `Refused: ${error.message}.` : `Not done: ${error.message}.`;
        button.disabled = false;
      }
    };
    dialog.onclose = () => {
      if (isDone) document.dispatchEvent(new Event("acted"));
      resolve(isDone);
    };
    dialog.showModal();
    find("confirm-no").focus();
  });
}
