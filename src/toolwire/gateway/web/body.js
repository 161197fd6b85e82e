// A body of any size: readable text, a tree, raw bytes, or frames, with the picked part marked.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { at as valueAt, children as childrenOf, pretty, SHORT } from "./document.js";
import { Dialog, Said } from "./parts.js";
import { newWorker } from "./trusted.js";
import { download, size, visible } from "./text.js";

const LARGE = 1048576;
const STEP = 200;

/** @typedef {{children: (pointer: string, from: number, most: number) => Promise<import("./document.js").Node[]>, whole: (pointer: string) => Promise<any>, root: any, close: () => void}} Doc */

/** @param {string} text @returns {Promise<Doc | null>} */
async function open(text) {
  if (text.length <= LARGE) {
    try {
      const root = JSON.parse(text);
      return { root, children: async (pointer, from, most) => childrenOf(root, pointer, from, most), whole: async (pointer) => valueAt(root, pointer), close: () => undefined };
    } catch {
      return null;
    }
  }
  const worker = newWorker();
  let id = 0;
  /** @type {Map<number, [(value: any) => void, (error: Error) => void]>} */
  const waiting = new Map();
  worker.onmessage = ({ data }) => {
    const [done, failed] = waiting.get(data.id) ?? [];
    waiting.delete(data.id);
    if (data.error) failed?.(new Error(data.error));
    else done?.(data.value);
  };
  /** @param {any} message @returns {Promise<any>} */
  const ask = (message) => new Promise((done, failed) => { waiting.set(++id, [done, failed]); worker.postMessage({ ...message, id }); });
  try {
    await ask({ parse: text });
  } catch {
    worker.terminate();
    return null;
  }
  return { root: undefined, children: (pointer, from, most) => ask({ pointer, from, most }), whole: (pointer) => ask({ pointer, whole: true }), close: () => worker.terminate() };
}

/** Scrolls a picked line into sight, in its own box only. @param {Element | null | undefined} line */
export function reveal(line) {
  const box = line?.closest(".content");
  if (!line || !box) return;
  const from = line.getBoundingClientRect(), to = box.getBoundingClientRect();
  if (from.top < to.top || from.top > to.bottom - 32) box.scrollTop += from.top - to.top - 48;
}

/** The document of a text, or null while it is read or if it is not JSON. @param {string | null} text @returns {{doc: Doc | null, done: boolean}} */
export function useDocument(text) {
  const [state, setState] = useState({ text: /** @type {string | null} */ (null), doc: /** @type {Doc | null} */ (null) });
  useEffect(() => {
    if (text === null) return undefined;
    let over = false;
    /** @type {Doc | null} */
    let made = null;
    open(text).then((doc) => {
      made = doc;
      if (over) doc?.close();
      else setState({ text, doc });
    });
    return () => { over = true; made?.close(); };
  }, [text]);
  return state.text === text ? { doc: state.doc, done: true } : { doc: null, done: false };
}

/** @param {{doc: Doc, picked: string[], onPick?: (pointer: string) => void}} props */
export function Tree({ doc, picked, onPick }) {
  return html`<div class="tree"><${Branch} doc=${doc} pointer="" depth=${0} picked=${picked} onPick=${onPick} /></div>`;
}

/** @param {{doc: Doc, pointer: string, depth: number, picked: string[], onPick?: (pointer: string) => void}} props */
function Branch({ doc, pointer, depth, picked, onPick }) {
  const [nodes, setNodes] = useState(/** @type {import("./document.js").Node[]} */ ([]));
  const [most, setMost] = useState(STEP);
  const [more, setMore] = useState(false);
  useEffect(() => {
    let over = false;
    // A picked member far down a long list has to be in the document to be shown.
    const index = Math.max(0, ...picked.filter((one) => one.startsWith(`${pointer}/`)).map((one) => Number(one.slice(pointer.length + 1).split("/")[0]) || 0));
    const want = Math.max(most, index + 1);
    doc.children(pointer, 0, want + 1).then((found) => { if (!over) { setMore(found.length > want); setNodes(found.slice(0, want)); } });
    return () => { over = true; };
  }, [doc, pointer, most, picked.join()]);
  return html`${nodes.map((node) => html`<${Leaf} key=${node.pointer} doc=${doc} node=${node} depth=${depth} picked=${picked} onPick=${onPick} />`)}
    ${more ? html`<button class="small" onClick=${() => setMost(most + STEP * 5)}>Show more</button>` : null}`;
}

/** @param {{doc: Doc, node: import("./document.js").Node, depth: number, picked: string[], onPick?: (pointer: string) => void}} props */
function Leaf({ doc, node, depth, picked, onPick }) {
  const lit = picked.includes(node.pointer);
  const inside = picked.some((one) => one.startsWith(`${node.pointer}/`));
  const [opened, setOpened] = useState(depth < 1);
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { if (inside) setOpened(true); }, [inside, picked.join()]);
  useLayoutEffect(() => { if (lit) reveal(line.current); }, [lit]);
  const name = html`<span class="key">${visible(node.key)}</span>${node.key ? ": " : ""}`;
  const mark = `${onPick ? "pick " : ""}${lit ? "lit-up" : ""}`;
  /** @param {Event} event */
  const pick = (event) => { if (onPick) { event.stopPropagation(); onPick(node.pointer); } };
  if (node.kind === "object" || node.kind === "array") {
    const title = `${node.kind === "array" ? `[${node.size}]` : `{${node.size}}`} ${node.text}`;
    return html`<details open=${opened} onToggle=${(/** @type {any} */ event) => { event.stopPropagation(); setOpened(event.target.open); }}>
      <summary ref=${line} class=${mark} onClick=${(/** @type {Event} */ event) => onPick?.(node.pointer)}>${name}<span class="dim">${visible(title)}</span></summary>
      ${opened ? html`<${Branch} doc=${doc} pointer=${node.pointer} depth=${depth + 1} picked=${picked} onPick=${onPick} />` : null}</details>`;
  }
  if (node.base64) return html`<div class=${`leaf ${mark}`} ref=${line} onClick=${pick}>${name}<${Blob64} doc=${doc} node=${node} /></div>`;
  if (node.kind === "string") return html`<div class=${`leaf ${mark}`} ref=${line} onClick=${pick}>${name}<${LongText} doc=${doc} node=${node} /></div>`;
  return html`<div class=${`leaf ${mark}`} ref=${line} onClick=${pick}>${name}<span class="lit">${node.text}</span></div>`;
}

/** @param {{doc: Doc, node: import("./document.js").Node}} props */
function LongText({ doc, node }) {
  const [whole, setWhole] = useState(/** @type {string | null} */ (null));
  if (whole !== null) return html`<span class="str"><${Said} text=${whole} mono /></span>`;
  return html`<span class="str said">"${visible(node.text)}${node.size > SHORT ? "" : '"'}</span>${node.size > SHORT ? html` <button class="small" onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); doc.whole(node.pointer).then(setWhole); }}>… show all ${size(node.size)}</button>` : null}`;
}

/** Base64 as a chip with its size, and a look at it on request. @param {{doc: Doc, node: import("./document.js").Node}} props */
function Blob64({ doc, node }) {
  const [whole, setWhole] = useState(/** @type {string | null} */ (null));
  const image = whole ? picture(whole) : "";
  return html`<button class="small" onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); doc.whole(node.pointer).then(setWhole); }}>base64 · ${size(Math.round(node.size * 0.75))} · preview</button>
    ${whole !== null ? html`<${Dialog} title="base64 data" onClose=${() => setWhole(null)} footer=${html`<button onClick=${() => download(whole, "data.b64")}>Download</button>`}>
      ${image ? html`<img class="preview" src=${image} alt="Preview of the data" />` : html`<pre>${visible(start(whole))}</pre>`}</${Dialog}>` : null}`;
}

/** @param {string} text */
const bare = (text) => text.replace(/^data:[^,]*,/, "").replace(/-/g, "+").replace(/_/g, "/");

/** @param {string} text */
function picture(text) {
  const body = bare(text);
  const kind = body.startsWith("iVBOR") ? "png" : body.startsWith("/9j/") ? "jpeg" : body.startsWith("R0lGOD") ? "gif" : body.startsWith("UklGR") ? "webp" : "";
  return kind ? `data:image/${kind};base64,${body}` : "";
}

/** @param {string} text */
function start(text) {
  try { return atob(bare(text).slice(0, 2048)); } catch { return text.slice(0, 2048); }
}

/** Readable text with the picked ranges marked. @param {{doc: Doc | null, text: string, picked: string[]}} props */
export function Readable({ doc, text, picked }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const made = useMemo(() => (doc?.root === undefined ? null : pretty(doc.root, picked)), [doc, picked.join()]);
  useLayoutEffect(() => { reveal(box.current?.querySelector("mark")); }, [made]);
  if (!made || !made.ranges.length) return html`<${Said} text=${made ? made.text : text} mono />`;
  const out = [];
  let at = 0;
  for (const [from, to] of made.ranges.sort((a, b) => a[0] - b[0])) {
    if (from < at) continue;
    out.push(visible(made.text.slice(Math.max(at, from - 40000), from)), html`<mark class="lit-up">${visible(made.text.slice(from, Math.min(to, from + 40000)))}</mark>`);
    at = to;
  }
  out.push(visible(made.text.slice(at, at + 40000)));
  return html`<div class="said mono" ref=${box}>${out}</div>`;
}
