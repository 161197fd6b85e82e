// The page, the thing that is open and the filter, all in the address after `#`.
import { signal, useEffect, useRef, useState } from "./html.js";

/** @typedef {{page: string, id: string, query: Record<string, string>}} Route */

/** @param {string} hash @returns {Route} */
function parse(hash) {
  const [path, search] = hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/");
  return { page: page || "live", id: decodeURIComponent(rest.join("/")), query: Object.fromEntries(new URLSearchParams(search || "")) };
}

export const route = signal(parse(location.hash));
addEventListener("hashchange", () => { route.value = parse(location.hash); });

/** @param {string} page @param {string} [id] @param {Record<string, string | undefined>} [query] */
export function address(page, id = "", query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) words.set(name, value);
  const search = words.toString();
  return `#/${page}${id ? "/" + encodeURIComponent(id) : ""}${search ? "?" + search : ""}`;
}

/** @param {string} page @param {string} [id] @param {Record<string, string | undefined>} [query] */
export function go(page, id, query) {
  location.hash = address(page, id, query);
}

/** A text that is typed, and a moment later is in the address under that name.
 * @param {string} name @returns {[string, (text: string) => void]} */
export function useTyped(name) {
  const text = route.value.query[name] ?? "";
  const [typed, setTyped] = useState(text);
  const sent = useRef(text);
  useEffect(() => {
    // Another address was opened: a link, or a step back.
    if (text !== sent.current) { sent.current = text; setTyped(text); }
  }, [text]);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (typed === sent.current) return;
      sent.current = typed;
      refine({ ...route.value.query, [name]: typed });
    }, 250);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}

/** Changes the address without a step in the history, as typing in a filter does.
 * @param {Record<string, string | undefined>} query */
export function refine(query) {
  const { page, id } = route.value;
  history.replaceState(null, "", address(page, id, query));
  route.value = parse(location.hash);
}
