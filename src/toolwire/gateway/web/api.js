// The gateway's API: requests with the session's CSRF text, and live events that resume.
import { signal, useEffect, useState } from "./html.js";

export const BASE = new URL("../", new URL("./", document.baseURI));
export const session = signal({ checked: false, in: false, csrf: "", open: false, version: "", server: "" });
/** Whether live events arrive; buttons that change something wait for it. */
export const connected = signal(true);
/** @type {import("./html.js").Signal<{id: number, text: string, bad: boolean}[]>} */
export const toasts = signal([]);
let toast = 0;

/** @param {string} text @param {boolean} [bad] */
export function say(text, bad = false) {
  const id = ++toast;
  toasts.value = [...toasts.value.slice(-3), { id, text, bad }];
  setTimeout(() => { toasts.value = toasts.value.filter((one) => one.id !== id); }, bad ? 9000 : 3500);
}

export class ApiError extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    const error = body?.error ?? {};
    super([error.message || `the gateway answered ${status}`, error.hint].filter(Boolean).join("; "));
    this.status = status;
    this.body = body;
  }
}

/** @param {string} path @param {any} [body] a POST if given @param {{method?: string, signal?: AbortSignal}} [options] @returns {Promise<any>} */
export async function api(path, body, options = {}) {
  const changes = body !== undefined || options.method;
  const answer = await fetch(new URL(`api/${path}`, BASE), {
    method: options.method ?? (changes ? "POST" : "GET"), signal: options.signal, credentials: "same-origin",
    headers: changes ? { "content-type": "application/json", "x-toolwire-csrf": session.value.csrf } : { accept: "application/json" },
    body: changes ? JSON.stringify(body ?? {}) : undefined,
  });
  if (answer.status === 401 && path !== "login") session.value = { ...session.value, in: false };
  if (answer.status === 204) return null;
  const read = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, read);
  return read;
}

/** Does something and reports its failure. @template T @param {() => Promise<T>} work @returns {Promise<T | undefined>} */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (/** @type {Error} */ (error).name !== "AbortError") say(/** @type {Error} */ (error).message, true);
    return undefined;
  }
}

/** Data of an address, loaded again when it or `version` changes. @param {string | null} path @param {unknown} [version]
 * @returns {{data: any, error: string, loading: boolean, reload: () => void, set: (data: any) => void}} */
export function useData(path, version) {
  const [state, setState] = useState({ path: /** @type {string | null} */ (null), data: /** @type {any} */ (null), error: "" });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    api(path, undefined, { signal: stop.signal }).then(
      (data) => setState({ path, data, error: "" }),
      (error) => { if (error.name !== "AbortError") setState((old) => ({ path, data: old.path === path ? old.data : null, error: error.message })); },
    );
    return () => stop.abort();
  }, [path, version, again]);
  const current = state.path === path;
  return { data: current ? state.data : null, error: current ? state.error : "", loading: !current, reload: () => setAgain((n) => n + 1), set: (data) => setState({ path, data, error: "" }) };
}

export async function logIn() {
  const code = /[#&]login=([^&]+)/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    dispatchEvent(new Event("hashchange"));
  }
  if (code) await attempt(() => enter({ code: decodeURIComponent(code) }));
  const state = await api("login");
  if (!state.logged_in && state.open) await attempt(() => enter({}));
  else session.value = { ...session.value, checked: true, in: state.logged_in, csrf: state.csrf ?? "", open: state.open, version: state.version, server: state.server };
  session.value = { ...session.value, checked: true, version: state.version, server: state.server, open: state.open };
}

/** @param {{code?: string, token?: string}} proof */
export async function enter(proof) {
  const { csrf } = await api("login", proof);
  session.value = { ...session.value, checked: true, in: true, csrf };
}

/** Live events; the number of the last one is sent again after a lost connection.
 * @param {() => string} path @param {Record<string, (data: any) => void>} handlers @returns {() => void} */
export function listen(path, handlers) {
  /** @type {EventSource | null} */
  let source = null;
  let timer = 0, wait = 500, closed = false, last = "";
  const open = () => {
    const url = new URL(`api/${path()}`, BASE);
    if (last) url.searchParams.set("after", last);
    source = new EventSource(url);
    source.onopen = () => { connected.value = true; wait = 500; };
    source.onerror = () => {
      connected.value = false;
      // The browser tries again by itself unless the answer was an error.
      if (source?.readyState !== EventSource.CLOSED || closed) return;
      source.close();
      timer = setTimeout(async () => {
        await api("login").then((state) => { if (!state.logged_in) session.value = { ...session.value, in: false }; else if (state.csrf) session.value = { ...session.value, csrf: state.csrf }; }, () => undefined);
        if (!closed) open();
      }, wait);
      wait = Math.min(wait * 2, 8000);
    };
    for (const [name, handler] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        const message = /** @type {MessageEvent} */ (event);
        if (message.lastEventId) last = message.lastEventId;
        handler(JSON.parse(message.data));
      });
    }
  };
  open();
  return () => { closed = true; clearTimeout(timer); source?.close(); connected.value = true; };
}
