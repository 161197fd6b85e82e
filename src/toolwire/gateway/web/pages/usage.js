// Usage: what was spent, by day, key and model; a chart, a table, a file.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { BASE, useData } from "../api.js";
import { Icon } from "../icons.js";
import { Choice, Empty, Failed, Top } from "../parts.js";
import { refine, route } from "../route.js";
import { count, money, span, visible } from "../text.js";

const MEASURES = [["cost", "Cost"], ["tokens", "Tokens"], ["requests", "Requests"], ["errors", "Errors"]];

const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
/** @param {number} n */
const brief = (n) => (n < 1e6 ? count(n) : compact.format(n));
/** @param {number} days */
const back = (days) => new Date(Date.now() - days * 86400000).toLocaleDateString("en-CA");
/** @param {any} row @param {string} measure */
const value = (row, measure) => (measure === "tokens" ? row.input + row.output : row[measure]) ?? 0;
/** @param {number} n @param {string} measure */
const shown = (n, measure) => (measure === "cost" ? money(n) : count(n));

export default function Usage() {
  const { query } = route.value;
  const by = query.by ?? "day,model", days = query.days ?? "30";
  const [measure, setMeasure] = useState("cost");
  const [sort, setSort] = useState({ name: "", down: true });
  const filters = `${query.key ? `&key=${encodeURIComponent(query.key)}` : ""}${query.model ? `&model=${encodeURIComponent(query.model)}` : ""}`;
  const path = `usage?by=${by}&since=${back(Number(days) - 1)}${filters}`;
  const { data, error } = useData(path);
  const set = (/** @type {any} */ change) => refine({ ...query, ...change });
  const rows = useMemo(() => {
    const all = [...(data?.rows ?? [])];
    if (sort.name) all.sort((a, b) => { const x = a[sort.name] ?? -1, y = b[sort.name] ?? -1; return (x < y ? -1 : x > y ? 1 : 0) * (sort.down ? -1 : 1); });
    return all;
  }, [data, sort]);
  const total = data?.total;
  const columns = [...(data?.by ?? []).map((/** @type {string} */ name) => [name, name, false]), ["requests", "requests", true], ["errors", "errors", true], ["input", "input", true], ["cached", "cached", true], ["output", "output", true], ["p50", "p50", true], ["p95", "p95", true], ["cost", "cost", true]];
  return html`<${Top} title="Usage"><span class="grow"></span><a class="button" href=${new URL(`api/${path}&format=csv`, BASE).href} download><${Icon} name="download" />CSV</a></${Top}>
    <div class="body">${error ? html`<${Failed} text=${error} />` : null}
      <div class="row wrap"><${Choice} label="Days" value=${days} onChange=${(/** @type {string} */ one) => set({ days: one })} options=${[["1", "Today"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]]} />
        <${Choice} label="By" value=${by} onChange=${(/** @type {string} */ one) => set({ by: one })} options=${[["day", "Day"], ["model", "Model"], ["key", "Key"], ["key,model", "Key × model"], ["day,model", "Day × model"], ["day,key", "Day × key"], ["day,key,model", "Day × key × model"]]} />
        ${data ? html`<select aria-label="Key" value=${query.key ?? ""} onChange=${(/** @type {any} */ event) => set({ key: event.target.value })}><option value="">every key</option>${data.keys.map((/** @type {string} */ one) => html`<option>${one}</option>`)}</select>
        <select aria-label="Model" value=${query.model ?? ""} onChange=${(/** @type {any} */ event) => set({ model: event.target.value })}><option value="">every model</option>${data.models.map((/** @type {string} */ one) => html`<option>${one}</option>`)}</select>` : null}</div>
      ${total ? html`<div class="cards"><div class="card"><b>${money(total.cost)}</b><span title="requests whose price is not known count nothing">cost${total.unpriced ? `, ${count(total.unpriced)} unpriced` : ""}</span></div><div class="card"><b>${count(total.requests)}</b><span>requests</span></div><div class="card"><b title=${count(total.input + total.output)}>${brief(total.input + total.output)}</b><span>tokens</span></div>
        <div class="card"><b>${total.input ? `${Math.round((100 * total.cached) / total.input)} %` : "–"}</b><span>of input cached</span></div><div class="card"><b>${total.requests ? `${((100 * total.errors) / total.requests).toFixed(1)} %` : "–"}</b><span>errors</span></div></div>` : null}
      ${data ? html`<section class="panel" aria-label="Chart"><header><h2 class="grow">${MEASURES.find(([name]) => name === measure)?.[1]} per day</h2><${Choice} small label="Measure" value=${measure} onChange=${setMeasure} options=${MEASURES} /></header><div class="inside"><${Chart} data=${data} measure=${measure} /></div></section>` : null}
      ${data ? html`<section class="panel" aria-label="Table"><div class="scroll"><table><thead><tr>${columns.map(([name, title, number]) => html`<th key=${name} class=${number ? "num" : ""} aria-sort=${sort.name === name ? (sort.down ? "descending" : "ascending") : undefined}><button onClick=${() => setSort({ name, down: sort.name === name ? !sort.down : true })}>${title}${sort.name === name ? (sort.down ? " ↓" : " ↑") : ""}</button></th>`)}</tr></thead>
        <tbody>${rows.slice(0, 1000).map((one, n) => html`<tr key=${n}>${columns.map(([name, , number]) => html`<td class=${number ? "num" : "keep"}>${cell(one, name)}</td>`)}</tr>`)}</tbody></table></div>${rows.length ? null : html`<${Empty} icon="usage" title="Nothing in these days">Requests through the gateway are counted here.</${Empty}>`}</section>` : null}</div>`;
}

/** @param {any} row @param {string} name */
function cell(row, name) {
  const one = row[name];
  if (name === "cost") return money(one);
  if (name === "p50" || name === "p95") return span(one);
  if (name === "errors") return one ? html`<span class="bad">${count(one)}</span>` : "–";
  return typeof one === "number" ? count(one) : visible(one ?? "–");
}

/** Bars per day, stacked by model or key where the table has them. @param {{data: any, measure: string}} props */
function Chart({ data, measure }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(960);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth || 960));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const group = data.by.includes("day") ? data.by.find((/** @type {string} */ name) => name !== "day") : undefined;
  const days = data.days;
  /** @type {Map<string, number>} */
  const sums = new Map();
  if (group) for (const row of data.rows) sums.set(row[group] ?? "–", (sums.get(row[group] ?? "–") ?? 0) + value(row, measure));
  const names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const kinds = names.length > 6 ? [...names.slice(0, 5), "others"] : names;
  const stacks = days.map((/** @type {any} */ day) => {
    if (!group) return [value(day, measure)];
    const out = kinds.map(() => 0);
    for (const row of data.rows) if (row.day === day.day) { const at = kinds.indexOf(row[group] ?? "–"); out[at < 0 ? kinds.length - 1 : at] += value(row, measure); }
    return out;
  });
  const most = Math.max(...stacks.map((/** @type {number[]} */ one) => one.reduce((a, b) => a + b, 0)), 0) || 1;
  const height = 200, left = 56, low = 176, step = (width - left) / Math.max(1, days.length);
  const marks = [0, 0.5, 1];
  const every = Math.ceil(days.length / Math.max(1, Math.floor((width - left) / 72)));
  return html`<div class="stack" ref=${box}><svg class="chart" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${`${measure} per day, at most ${shown(most, measure)}`}>
    ${marks.map((part) => html`<g key=${part}><line x1=${left} x2=${width} y1=${low - part * 160} y2=${low - part * 160} /><text x=${left - 8} y=${low - part * 160 + 4} text-anchor="end">${part ? shown(measure === "cost" ? most * part : Math.round(most * part), measure) : "0"}</text></g>`)}
    ${stacks.map((/** @type {number[]} */ parts, /** @type {number} */ n) => {
      let y = low;
      return html`<g key=${n}><title>${days[n].day}: ${shown(parts.reduce((a, b) => a + b, 0), measure)}</title>${parts.map((part, kind) => { const tall = (part / most) * 160; y -= tall; return tall > 0 ? html`<rect class=${`b${Math.min(kind, 5)}`} x=${left + n * step + step * 0.15} y=${y} width=${Math.min(step * 0.7, 48)} height=${tall} rx="1" />` : null; })}
        ${n % every === 0 ? html`<text x=${left + n * step + step * 0.15} y=${height - 6}>${days[n].day.slice(5)}</text>` : null}</g>`;
    })}</svg>
    ${kinds.length > 1 ? html`<div class="legend">${kinds.map((name, n) => html`<span key=${name}><svg viewBox="0 0 10 10" aria-hidden="true"><rect class=${`b${Math.min(n, 5)}`} width="10" height="10" rx="2" /></svg>${visible(name)}</span>`)}</div>` : null}</div>`;
}
