// The requests that the list holds: compact, newest first, changed by live events.
import { signal } from "./html.js";
import { api } from "./api.js";

/** @typedef {{id: string, n: number, state: string, phase: string, time: number, client: string, model: string, asked: string, via: string, tokens: number, duration: number, cost: number | null, losses: number, status: number, error: string}} Row */
const MOST = 100000;
const PAGE = 1000;
/** @type {Map<string, string>} */
const words = new Map();

/** One copy of each text: many rows have the same client, model and format. @param {string} text */
function shared(text) {
  const found = words.get(text);
  if (found !== undefined) return found;
  if (words.size > 5000) words.clear();
  words.set(text, text);
  return text;
}
/** @type {Record<string, string>} */
const SHORT = { "openai-chat": "chat", "openai-responses": "responses", "anthropic-messages": "anthropic" };

/** @param {any} one */
function failure(one) {
  const words = (one.error_message || one.error.replace(/_/g, " ")).slice(0, 120);
  const status = one.status >= 400 && !words.startsWith(one.status) ? `${one.status} ` : "";
  return `${status}${words}${one.retries ? `, ${one.retries + 1} tries` : ""}`;
}

/** The program that asked; pages of the console ask with a key of their own. @param {any} one @returns {string} */
export const clientOf = (one) => one.client || (one.key === "console" ? "playground" : "");

/** @param {any} one @returns {Row} */
function row(one) {
  const via = one.upstream_format ? `${SHORT[one.client_format] ?? one.client_format}→${SHORT[one.upstream_format] ?? one.upstream_format}` : one.client_format;
  const model = one.model || one.requested_model;
  const error = one.error ? failure(one) : one.state === "cancelled" ? "cancelled" : "";
  return { id: one.id, n: one.n, state: shared(one.state), phase: shared(one.phase), time: one.time, client: shared(clientOf(one)), model: shared(model), asked: shared(one.requested_model), via: shared(via),
    tokens: (one.input ?? 0) + (one.output ?? 0), duration: one.duration, cost: one.cost, losses: one.losses, status: one.status, error: shared(error) };
}

export class Rows {
  /** @param {string} filters part of an address */
  constructor(filters) {
    this.filters = filters;
    /** Oldest first. @type {Row[]} */
    this.rows = [];
    /** @type {Map<string, Row>} */
    this.byId = new Map();
    this.version = signal(0);
    this.shifted = 0;
    this.seen = 0;
    this.recording = "";
    this.error = "";
    this.loaded = false;
    /** @type {string | null} */
    this.next = null;
    this.loading = false;
    this.paused = false;
    /** @type {any[]} */
    this.waiting = [];
    this.frame = 0;
  }

  /** @param {number} index counted from the newest */
  at(index) { return this.rows[this.rows.length - 1 - index]; }

  /** @param {string} id */
  index(id) {
    const found = this.byId.get(id);
    return found ? this.rows.length - 1 - this.rows.lastIndexOf(found) : -1;
  }

  changed() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.version.value++; });
  }

  /** The newest page; rows that are held stay. */
  async load() {
    try {
      const page = await api(`requests?limit=200${this.filters}`);
      this.seen = page.seen;
      this.recording = page.recording;
      const joins = page.requests.some((/** @type {any} */ one) => this.byId.has(one.id));
      if (this.rows.length && !joins) this.clear();
      if (!this.rows.length) this.next = page.next;
      this.add(page.requests.reverse());
      this.error = "";
    } catch (error) {
      this.error = /** @type {Error} */ (error).message;
    }
    this.loaded = true;
    this.changed();
  }

  clear() {
    this.rows = [];
    this.byId.clear();
    this.next = null;
  }

  /** Whether there are more requests than the list holds. */
  get full() { return this.next !== null && this.rows.length >= MOST; }

  async older() {
    if (this.loading || this.next === null || this.rows.length >= MOST) return;
    this.loading = true;
    this.changed();
    try {
      const page = await api(`requests?limit=${PAGE}&before=${encodeURIComponent(this.next)}${this.filters}`);
      const old = page.requests.map(row).filter((/** @type {Row} */ one) => !this.byId.has(one.id)).reverse();
      for (const one of old) this.byId.set(one.id, one);
      this.rows = old.concat(this.rows);
      this.next = page.next;
    } catch {
      // The list stays as it is; scrolling on tries again.
    }
    this.loading = false;
    this.changed();
  }

  /** @param {any[]} found oldest first; a request that is held already is replaced */
  add(found) {
    if (this.paused) { this.waiting.push(...found); this.changed(); return; }
    for (const one of found) {
      const old = this.byId.get(one.id), fresh = row(one);
      if (old) {
        if (fresh.n >= old.n) Object.assign(old, fresh);
        continue;
      }
      this.byId.set(one.id, fresh);
      let at = this.rows.length;
      while (at > 0 && this.rows[at - 1].time > fresh.time) at--;
      this.rows.splice(at, 0, fresh);
      if (this.loaded) { this.shifted++; this.seen++; }
    }
    while (this.rows.length > MOST) this.byId.delete(/** @type {Row} */ (this.rows.shift()).id);
    this.changed();
  }

  /** How many requests are not in the list yet. @param {any[]} found */
  unseen(found) { return new Set(found.map((one) => one.id).filter((id) => !this.byId.has(id))).size; }

  /** @param {boolean} paused */
  pause(paused) {
    this.paused = paused;
    const waiting = this.waiting;
    this.waiting = [];
    if (!paused) this.add(waiting);
    this.changed();
  }

  /** Requests shown as running that the server does not run any more. @param {string[]} running */
  async settle(running) {
    const over = this.rows.filter((one) => one.state === "running" && !running.includes(one.id));
    for (const one of over) {
      await api(`requests/${one.id}`).then(({ request }) => this.add([request]), () => { one.state = "failed"; one.error = "lost when the gateway stopped"; });
    }
    this.changed();
  }
}
