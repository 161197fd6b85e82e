// Keys: one listener; the innermost layer that knows a key takes it.
import { useLayoutEffect, useRef } from "./html.js";

/** @typedef {Record<string, (event: KeyboardEvent) => void>} Keys */
/** @type {{current: Keys, depth: number}[]} */
const layers = [];
let depth = 0;
let leader = -Infinity;

// The field of a dialog keeps the focus after that has closed, until the next frame is drawn.
/** @param {EventTarget | null} target */
const typing = (target) => target instanceof HTMLElement && !target.closest("dialog:not([open])")
  && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target instanceof HTMLInputElement && !/^(checkbox|radio|button)$/.test(target.type)));

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  let key = event.key;
  if (event.ctrlKey || event.metaKey) {
    if (key.toLowerCase() !== "k") return;
    key = "palette";
  } else if (typing(event.target)) {
    // A dialog is closed at once; elsewhere the first step back is out of the field.
    if (key !== "Escape" || /** @type {HTMLElement} */ (event.target).closest("dialog")) return;
    /** @type {HTMLElement} */ (event.target).blur();
    event.preventDefault();
    return;
  } else if (performance.now() - leader < 1200) {
    leader = -Infinity;
    key = `g ${key}`;
  } else if (key === "g") {
    leader = performance.now();
    return;
  }
  if (document.querySelector("dialog[open]") && key !== "palette") return;
  if (key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  // A box that has the focus is scrolled by its keys.
  if (/^(Arrow|Page|Home|End)/.test(key) && event.target instanceof Element && event.target.closest(".content, .diff, .transcript")) return;
  for (let n = layers.length - 1; n >= 0; n--) {
    const action = layers[n].current[key];
    if (!action) continue;
    event.preventDefault();
    action(event);
    return;
  }
});

/** Keys of a component, for as long as it is shown. @param {Keys} keys */
export function useKeys(keys) {
  // A parent is drawn before its children, so a later number is further in.
  const held = useRef(/** @type {{current: Keys, depth: number} | null} */ (null));
  held.current ??= { current: keys, depth: ++depth };
  held.current.current = keys;
  // Before the paint: a key pressed on what one sees must not reach what was there before.
  useLayoutEffect(() => {
    const layer = /** @type {{current: Keys, depth: number}} */ (held.current);
    layers.push(layer);
    layers.sort((a, b) => a.depth - b.depth);
    return () => { layers.splice(layers.indexOf(layer), 1); };
  }, []);
}
