// Server-sent events by fetch: an EventSource could not send the token in a header.

import { headers, refusal } from "./api.js";

const PATIENCE = 8000; // milliseconds without a word after which a connection is taken for dead

// Follows a stream until stop() is called; after a break it tries again, more and more slowly.
export function follow(path, { onEvent, onLive, onLost, onRefused }) {
  let stopped = false, abort = new AbortController(), delay = 500, watch;

  async function once() {
    const response = await fetch(`v1${path}`, { headers: headers(), cache: "no-store", signal: abort.signal });
    if (!response.ok) throw await refusal(response);
    delay = 500;
    onLive();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      clearTimeout(watch);
      watch = setTimeout(() => abort.abort(), PATIENCE);
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) read(part);
    }
  }

  function read(part) {
    let name = "message", data = "";
    for (const line of part.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data) onEvent(name, JSON.parse(data));
  }

  (async () => {
    while (!stopped) {
      let why = null;
      try {
        await once();
      } catch (error) {
        if (stopped) return;
        if ([401, 403, 404].includes(error.status)) return onRefused(error);
        why = error.status ? error.message : null;
      }
      clearTimeout(watch);
      if (stopped) return;
      onLost(why);
      await new Promise(resolve => setTimeout(resolve, delay));
      delay = Math.min(delay * 2, 8000);
      abort = new AbortController();
    }
  })();

  return () => {
    stopped = true;
    clearTimeout(watch);
    abort.abort();
  };
}
