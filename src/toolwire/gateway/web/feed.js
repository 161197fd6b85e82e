// One live connection per page: the newest part of the page that needs one has it.
import { effect, signal, useEffect, useRef } from "./html.js";
import { connected, listen, useData } from "./api.js";

/** @typedef {Record<string, any>} Question */
/** @type {import("./html.js").Signal<Question[]>} */
export const questions = signal([]);
// After a lost connection a question may be answered, or asked anew: it waits for the server's list.
effect(() => { if (!connected.value && questions.peek().length) questions.value = questions.peek().map((one) => ({ ...one, stale: true })); });
/** Sessions that changed, by id. @type {import("./html.js").Signal<Record<string, any>>} */
export const changed = signal({});
/** The server's number of its start: another one means that it was restarted. */
export const boot = signal("");
export const problem = signal("");

/** @type {{path: () => string, handlers: {current: Record<string, (data: any) => void>}}[]} */
const stack = [];
let close = () => {};

function connect() {
  close();
  const top = stack[stack.length - 1];
  close = top ? listen(top.path, Object.fromEntries(["hello", "requests", "questions", "sessions", "session", "settings", "records", "partial", "pieces", "dropped"].map((name) => [name, (data) => {
    if (name === "questions") questions.value = data.questions;
    const rows = name === "sessions" ? data.sessions : name === "session" ? [data.session] : [];
    if (rows.length) changed.value = { ...changed.value, ...Object.fromEntries(rows.map((/** @type {any} */ row) => [row.id, row])) };
    if (name === "hello") boot.value = data.server;
    if (name === "settings") problem.value = data.problem;
    top.handlers.current[name]?.(data);
  }]))) : () => {};
}

/** Data of an address, read again a moment after each request through the gateway. @param {string} path */
export function useLiveData(path) {
  const state = useData(path);
  const timer = useRef(0);
  const soon = () => { timer.current ||= setTimeout(() => { timer.current = 0; state.reload(); }, 500); };
  useEffect(() => () => clearTimeout(timer.current), []);
  const first = useRef(true);
  useFeed("live?topics=requests,questions", { requests: soon, dropped: soon, hello: () => { if (!first.current) soon(); first.current = false; } });
  return state;
}

/** @param {string} path @param {Record<string, (data: any) => void>} handlers */
export function useFeed(path, handlers = {}) {
  const held = useRef(handlers);
  held.current = handlers;
  useEffect(() => {
    const entry = { path: () => path, handlers: held };
    stack.push(entry);
    connect();
    return () => {
      const top = stack[stack.length - 1] === entry;
      stack.splice(stack.indexOf(entry), 1);
      // The next page's connection is opened in the same step; only a page without one needs this.
      if (top) { close(); close = () => {}; queueMicrotask(() => { if (stack.length && stack[stack.length - 1] !== entry) connect(); }); }
    };
  }, [path]);
}
