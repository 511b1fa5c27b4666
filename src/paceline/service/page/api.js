// Calls of the service. The token stays in this tab and travels in a header, never in an address.

const KEY = "paceline-token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: value => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function headers(more = {}) {
  const kept = token.get();
  return kept ? { Authorization: `Bearer ${kept}`, ...more } : more;
}

export async function refusal(response) {
  let detail = `the service answered with status ${response.status}`;
  try {
    detail = (await response.json()).detail ?? detail;
  } catch { /* no problem document: a proxy in between */ }
  return new Refused(response.status, detail);
}

export async function call(method, path, body, more = {}) {
  const options = { method, headers: headers(more), cache: "no-store" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(`v1${path}`, options);
  } catch {
    throw new Refused(0, "the service cannot be reached");
  }
  if (!response.ok) throw await refusal(response);
  return response.json();
}

export const of = name => `/bandits/${encodeURIComponent(name)}`;
