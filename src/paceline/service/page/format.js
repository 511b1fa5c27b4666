// Numbers and times as a reader wants them.

const LOCALE = "en";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumSignificantDigits: 4 });
const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const moment = new Intl.DateTimeFormat(LOCALE, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});

export const count = value => (value >= 1e7 ? compact : whole).format(value);

// Two digits behind the point for what is above 1, more for less.
export function amount(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e7) return compact.format(value);
  if (size >= 1000) return value.toLocaleString(LOCALE, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
  if (size >= 1) return value.toLocaleString(LOCALE, { maximumFractionDigits: 2, minimumFractionDigits: 2 });
  if (size < 1e-9) return "0";
  if (size >= 0.01) return value.toLocaleString(LOCALE, { maximumFractionDigits: 3, minimumFractionDigits: 3 });
  return value.toLocaleString(LOCALE, { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
}

export const percent = part => `${(100 * part).toLocaleString(LOCALE, { maximumFractionDigits: part > 0 && part < 0.1 ? 1 : 0 })} %`;

export const time = seconds => clock.format(new Date(seconds * 1000));
export const day = seconds => moment.format(new Date(seconds * 1000));

export function span(seconds) {
  if (seconds < 1) return seconds < 0.05 ? "0 s" : `${seconds.toFixed(1)} s`;
  for (const [unit, size] of [["day", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}${unit === "day" ? "s" : ""}`;
  }
  return `${Math.round(seconds)} s`;
}

// Amounts come as a number, or by resource where these have names.
export const byResource = value => (typeof value === "object" && value !== null ? value : { cost: value });

// What may still be spent, with the workers and in the pool.
export function leftOf(fleet) {
  const [spent, reserved] = [byResource(fleet.spent), byResource(fleet.reserved)];
  return Object.fromEntries(Object.entries(byResource(fleet.credited)).map(([name, all]) => [name, all - spent[name] - reserved[name]]));
}

// What workers of some kinds hold, all together.
export function leftWith(fleet, kinds) {
  const held = fleet.workers.filter(worker => kinds.includes(worker.status)).map(worker => byResource(worker.headroom));
  const all = Object.fromEntries(Object.keys(byResource(fleet.credited)).map(name => [name, held.reduce((sum, each) => sum + Math.max(each[name], 0), 0)]));
  return typeof fleet.credited === "object" ? all : all.cost;
}

export function words(value) {
  return typeof value === "object" && value !== null
    ? Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => `${amount(each)} ${name}`).join(", ")
    : amount(value);
}
