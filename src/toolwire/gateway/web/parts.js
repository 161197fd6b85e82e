// Small parts that all pages share: dialogs, choices, empty states, texts of models.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { connected, say } from "./api.js";
import { Icon } from "./icons.js";
import { visible } from "./text.js";

/** @typedef {any} Children */

/** @param {{title: string, children?: Children}} props */
export const Top = ({ title, children }) => html`<header class="top"><h1>${title}</h1>${children}</header>`;

/** @param {{icon: string, title: string, children?: Children}} props */
export const Empty = ({ icon, title, children }) => html`<div class="empty"><${Icon} name=${icon} /><b>${title}</b><div>${children}</div></div>`;

/** @param {{text: string}} props */
export const Failed = ({ text }) => html`<p class="note bad" role="alert">${text}</p>`;

/** @param {{options: [string, string][], value: string, onChange: (value: string) => void, label: string, small?: boolean}} props */
export function Choice({ options, value, onChange, label, small }) {
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const now = options.findIndex(([name]) => name === value);
    const next = (now + step + options.length) % options.length;
    onChange(options[next][0]);
    /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (event.currentTarget).children[next]).focus();
  };
  return html`<div class=${small ? "choice small" : "choice"} role="radiogroup" aria-label=${label} onKeyDown=${keys}>
    ${options.map(([name, title]) => html`<button key=${name} type="button" role="radio" aria-checked=${name === value} tabindex=${name === value ? 0 : -1} onClick=${() => onChange(name)}>${title}</button>`)}</div>`;
}

/** @param {{title: string, onClose: () => void, children?: Children, footer?: Children, kind?: string}} props */
export function Dialog({ title, onClose, children, footer, kind = "" }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog class=${kind} ref=${box} aria-label=${title} onClose=${onClose} onClick=${(/** @type {MouseEvent} */ event) => { if (event.target === box.current) onClose(); }}>
    ${kind === "palette" ? null : html`<header><h2 class="grow">${title}</h2><button class="plain" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>`}
    ${kind === "palette" ? children : html`<div class="inside">${children}</div>`}${footer ? html`<footer>${footer}</footer>` : null}</dialog>`;
}

/** A button that changes something: waits for its work, and for the connection.
 * @param {{run: () => Promise<unknown>, kind?: string, disabled?: boolean, children?: Children, label?: string}} props */
export function Act({ run, kind = "", disabled, children, label }) {
  const [busy, setBusy] = useState(false);
  const work = async () => {
    setBusy(true);
    try { await run(); } catch (error) { say(/** @type {Error} */ (error).message, true); } finally { setBusy(false); }
  };
  return html`<button type="button" class=${kind} disabled=${busy || disabled || !connected.value} aria-busy=${busy} aria-label=${label} onClick=${work}>${children}</button>`;
}

/** @param {string} text @param {string} [what] */
export async function copy(text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    say(what);
  } catch {
    say("the browser does not allow copying here; select the text instead", true);
  }
}

const MOST = 65536;

/** Text from a model, a tool or a server, which is never markup. Long text is shown in pieces.
 * @param {{text: string, mono?: boolean}} props */
export function Said({ text, mono }) {
  const [shown, setShown] = useState(MOST);
  const cut = text.length > shown;
  const pieces = [];
  for (let at = 0; at < Math.min(text.length, shown); at += MOST) pieces.push(html`<div key=${at} class="piece">${visible(text.slice(at, Math.min(at + MOST, shown)))}</div>`);
  return html`<div class=${mono ? "said mono" : "said"} dir="auto">${pieces}</div>${cut ? html`<button class="small" onClick=${() => setShown(shown + MOST * 4)}>Show more (${Math.round((text.length - shown) / 1024)} KB left)</button>` : null}`;
}

/** @type {Promise<typeof import("./markdown.js")> | null} */
let markdown = null;

/** A reply of a model: Markdown once its reader is loaded, text before and for very long ones. @param {{text: string}} props */
export function Reply({ text }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [ready, setReady] = useState(/** @type {typeof import("./markdown.js") | null} */ (null));
  const plain = text.length > MOST;
  useEffect(() => {
    if (plain) return;
    markdown ??= import("./markdown.js");
    // Not loaded while the server was restarted: the next reply asks again.
    markdown.then(setReady, () => { markdown = null; });
  }, [plain]);
  useLayoutEffect(() => { if (ready && !plain && box.current) ready.show(box.current, visible(text)); }, [ready, text, plain]);
  return plain || !ready ? html`<${Said} text=${text} />` : html`<div class="md" dir="auto" ref=${box} key="md"></div>`;
}
