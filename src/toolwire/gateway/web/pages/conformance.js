// Conformance: the suites of each format, a probe of a real server, and the table of clients.
import { html, useEffect, useState } from "../html.js";
import { api, useData } from "../api.js";
import { Act, copy, Empty, Failed, Said, Top } from "../parts.js";
import { route } from "../route.js";
import { ago, moment, money, span, visible } from "../text.js";

/** @type {Record<string, [string, string]>} */
const RESULTS = { ok: ["good", "✓"], differs: ["warn", "≠"], failed: ["bad", "✕"], skipped: ["", "–"] };

export default function Conformance() {
  const { data, error, reload } = useData("conformance");
  const models = useData("models");
  const [model, setModel] = useState(route.value.query.model ?? "");
  const busy = data?.suites.some((/** @type {any} */ one) => one.running) || data?.probes.some((/** @type {any} */ one) => one.state === "running");
  useEffect(() => { if (!busy) return undefined; const timer = setInterval(reload, 500); return () => clearInterval(timer); }, [busy]);
  /** @type {string[]} */
  const formats = [...new Set((data?.suites ?? []).map((/** @type {any} */ one) => one.format))], names = [...new Set((data?.suites ?? []).map((/** @type {any} */ one) => one.name))];
  const suite = (/** @type {string} */ format, /** @type {string} */ name) => data.suites.find((/** @type {any} */ one) => one.format === format && one.name === name);
  const run = async () => { await api("conformance/run", { format: null }); reload(); };
  const probe = async () => { await api("conformance/probe", { model }); reload(); };
  return html`<${Top} title="Conformance"><span class="dim only-wide">${data ? `version ${data.version}` : ""}</span><span class="grow"></span><${Act} kind="main" disabled=${busy} run=${run}>Run the suites</${Act}></${Top}>
    <div class="body">${error ? html`<${Failed} text=${error} />` : null}
      ${data ? html`<section class="panel" aria-label="Suites"><header><h2>Suites per format</h2></header><div class="scroll"><table><thead><tr><th>format</th>${names.map((name) => html`<th key=${name}>${name}</th>`)}<th>date</th></tr></thead><tbody>
        ${formats.map((format) => html`<tr key=${format}><td class="mono">${format}</td>${names.map((name) => html`<td key=${name}><${Suite} one=${suite(format, name)} /></td>`)}<td class="dim keep" title=${moment(suite(format, names[0]).date)}>${suite(format, names[0]).date ? ago(suite(format, names[0]).date) : "–"}</td></tr>`)}</tbody></table></div></section>
      <section class="panel" aria-label="Clients"><header><h2 class="grow">Clients before upstream formats</h2>${data.clients ? html`<span class="dim">acceptance run of ${moment(data.clients.date).slice(0, 10)}, version ${data.clients.version || data.version}</span>` : null}</header>${data.clients ? html`<div class="scroll"><table><thead><tr><th>client</th>${data.clients.columns.map((/** @type {string} */ one) => html`<th key=${one} class="mono">${one}</th>`)}</tr></thead><tbody>
        ${data.clients.rows.map((/** @type {any} */ one) => html`<tr key=${one.client}><td>${one.client}</td>${one.cells.map((/** @type {string} */ cell) => html`<td title=${cell}>${cell === "passed" ? html`<span class="good">✓ passed</span>` : cell.startsWith("passed") ? html`<span class="good">✓ ${cell.slice(7)}</span>` : cell.startsWith("failed") ? html`<span class="bad">✕ ${visible(cell)}</span>` : html`<span class="dim">${cell}</span>`}</td>`)}</tr>`)}</tbody></table></div>` : html`<${Empty} icon="conformance" title="No acceptance run is stored">The table of clients and upstreams of the last run comes here.</${Empty}>`}</section>
      <section class="panel" aria-label="Probe"><header><h2 class="grow">Probe this provider</h2><input list="probe-names" aria-label="Model to probe" placeholder="provider/model" value=${model} onInput=${(/** @type {any} */ event) => setModel(event.target.value)} /><datalist id="probe-names">${(models.data?.names ?? []).map((/** @type {any} */ one) => html`<option value=${one.model}></option>`)}</datalist><${Act} kind="main" disabled=${!model} run=${probe}>Probe</${Act}></header>
        <div class="inside stack">${data.probes.length ? data.probes.map((/** @type {any} */ one) => html`<${Probe} key=${one.id} one=${one} />`) : html`<p class="dim">About 12 small requests to the real server: parallel calls, ids, signatures, schemas, a cut by length, usage. Each finding comes with its bytes, and with settings that make toolwire fit.</p>`}</div></section>` : null}</div>`;
}

/** @param {{one: any}} props */
const Suite = ({ one }) => one.running ? html`<span class="pulse" aria-label="running"></span>` : !one.date ? html`<span class="dim">not run yet</span>`
  : html`<span class=${`chip ${one.passed === one.total ? "good" : "bad"}`}>${one.passed === one.total ? "✓" : "✕"} ${one.passed} of ${one.total}</span>${one.failures.slice(0, 5).map((/** @type {any} */ failure) => html`<div class="bad said">${visible(failure.case)}: ${visible(failure.message)}</div>`)}`;

/** @param {{one: any}} props */
function Probe({ one }) {
  return html`<article class="stack" aria-label=${`Probe of ${one.model}`}><div class="row wrap"><b>${visible(one.model)}</b><span class="dim">${one.state === "running" ? `${one.requests} of ${one.of} requests…` : ago(one.started)}</span>${one.cost != null ? html`<span class="dim">${money(one.cost)}</span>` : null}${one.state === "running" ? html`<span class="pulse"></span>` : null}</div>
    ${one.error ? html`<${Failed} text=${one.error} />` : null}
    ${one.findings.map((/** @type {any} */ found) => { const [kind, sign] = RESULTS[found.result] ?? ["", "?"]; return html`<details class="call" key=${found.check}><summary><span class=${kind} aria-label=${found.result}>${sign}</span><b>${found.title}</b><span class="dim grow cut">${visible(found.text)}</span><span class="dim">${found.seconds ? span(found.seconds) : ""}</span></summary>
      <div class="inside"><p>${visible(found.text)}</p>${found.sent ? html`<h3>sent</h3><div class="tail"><${Said} text=${found.sent} mono /></div>` : null}${found.received ? html`<h3>received</h3><div class="tail"><${Said} text=${found.received} mono /></div>` : null}</div></details>`; })}
    ${one.quirks ? html`<div><h3>Proposed settings</h3><pre class="note accent">${visible(one.quirks)}</pre><button class="small" onClick=${() => copy(one.quirks)}>Copy</button></div>` : null}</article>`;
}
