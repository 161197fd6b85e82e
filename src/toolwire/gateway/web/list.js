// A list of fixed rows: only those in sight, and a few either side, are in the document.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keyboard.js";

export const ROW = 32;
const BESIDE = 8;

/**
 * @param {{total: number, row: (index: number) => unknown, selected: number, label: string, kind: string,
 *   onSelect: (index: number) => void, onOpen: (index: number) => void, shifted?: number, version?: unknown,
 *   onTop?: (top: boolean) => void, onRange?: (first: number, last: number) => void, toTop?: number}} props
 * `shifted` counts rows ever put before the first: what the reader looks at stays where it is.
 */
export function VirtualList(props) {
  const { total, row, selected, label, kind, onSelect, onOpen, shifted = 0, version, onTop, onRange, toTop = 0 } = props;
  const drawn = useRef({ version, total, rows: /** @type {Map<string, unknown>} */ (new Map()) });
  const latest = useRef((/** @type {number} */ index) => { onSelect(index); onOpen(index); });
  latest.current = (index) => { onSelect(index); onOpen(index); };
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ first: 0, rows: 24 });
  const seen = useRef({ shifted, top: true });

  const measure = () => {
    const element = box.current;
    if (!element) return;
    const first = Math.floor(element.scrollTop / ROW);
    const rows = Math.ceil(element.clientHeight / ROW) + 1;
    const top = element.scrollTop < 4;
    if (top !== seen.current.top) {
      seen.current.top = top;
      onTop?.(top);
    }
    setView((old) => (old.first === first && old.rows === rows ? old : { first, rows }));
    onRange?.(first, first + rows);
  };
  useLayoutEffect(() => {
    const added = shifted - seen.current.shifted;
    seen.current.shifted = shifted;
    const element = box.current;
    if (element && added && !seen.current.top) element.scrollTop += added * ROW;
  }, [shifted]);
  useEffect(() => { if (box.current && toTop) box.current.scrollTop = 0; }, [toTop]);
  useEffect(() => {
    const watch = new ResizeObserver(measure);
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);

  /** @param {number} index */
  const choose = (index) => {
    const next = Math.max(0, Math.min(total - 1, index));
    const element = box.current;
    if (element && total) {
      const top = next * ROW;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
    }
    if (total) onSelect(next);
  };
  const page = () => Math.max(1, view.rows - 3);
  useKeys({
    j: () => choose(selected + 1), ArrowDown: () => choose(selected + 1),
    k: () => choose(selected < 0 ? 0 : selected - 1), ArrowUp: () => choose(selected < 0 ? 0 : selected - 1),
    PageDown: () => choose(selected + page()), PageUp: () => choose(selected - page()),
    Home: () => choose(0), End: () => choose(total - 1),
    Enter: () => { if (selected >= 0) onOpen(selected); },
  });

  const first = Math.max(0, view.first - BESIDE);
  const last = Math.min(total, view.first + view.rows + BESIDE);
  const shown = [];
  // A row that did not change is the same value, which is not compared again.
  const made = drawn.current;
  if (made.version !== version || made.total !== total) drawn.current.rows = new Map();
  const old = made.rows;
  drawn.current = { version, total, rows: new Map() };
  for (let index = first; index < last; index++) {
    const name = `${index}${index === selected}`;
    const value = old.get(name) ?? html`<div key=${index} id=${`${kind}-${index}`} class=${`vrow ${kind}`} role="option" aria-posinset=${index + 1} aria-setsize=${total}
      aria-selected=${index === selected} style=${{ transform: `translateY(${index * ROW}px)` }} onClick=${() => latest.current(index)}>${row(index)}</div>`;
    drawn.current.rows.set(name, value);
    shown.push(value);
  }
  return html`<div class="vlist" ref=${box} role="listbox" aria-label=${label} tabindex="0" onScroll=${measure}
    aria-activedescendant=${selected >= first && selected < last ? `${kind}-${selected}` : undefined}>
    <div role="presentation" style=${{ height: `${total * ROW}px` }}>${shown}</div></div>`;
}
