// One request: five stages with the same part marked in all, losses, state put back, times.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { api, attempt, BASE, useData } from "../api.js";
import { Readable, reveal, Tree, useDocument } from "../body.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keyboard.js";
import { Act, Choice, copy, Dialog, Failed, Said } from "../parts.js";
import { address, go, route } from "../route.js";
import { clientOf } from "../rows.js";
import { count, money, size, span, visible } from "../text.js";

const STAGES = ["Client bytes", "Canonical", "Upstream bytes", "Upstream answer", "Client answer"];
const VIEWS = [["text", "Text"], ["tree", "Tree"], ["raw", "Raw"], ["frames", "Frames"]];

/** @typedef {{key: string, kind: string, label: string, turn: number, answer: boolean, at: Record<string, string[]>, frames: Record<string, number[]>}} Part */

/** @param {{id: string, version: number, recording: string}} props */
export function Request({ id, version }) {
  const { data, error } = useData(`requests/${encodeURIComponent(id)}`, version);
  const [stage, setStage] = useState(localStorage.getItem("stage") ?? "0");
  const [view, setView] = useState("tree");
  const [picked, setPicked] = useState("");
  const [compare, setCompare] = useState(false);
  const choose = (/** @type {string} */ value) => { setStage(value); localStorage.setItem("stage", value); };
  const keys = Object.fromEntries(["0", "1", "2", "3", "4", "5"].map((name) => [name, () => choose(name)]));
  useKeys({ ...keys, v: () => setView(VIEWS[(VIEWS.findIndex(([name]) => name === view) + 1) % VIEWS.length][0]), c: () => { if (data?.request.recorded === "full") setCompare(true); } });
  if (error && !data) return html`<div class="stack"><${Failed} text=${error} /></div>`;
  if (!data) return null;
  const { request, parts } = data;
  const part = parts.find((/** @type {Part} */ one) => one.key === picked) ?? null;
  /** One reason for all stages is given once. */
  const why = data.stages.every((/** @type {any} */ one) => !one.available && one.why === data.stages[0].why) ? data.stages[0].why : "";
  const shown = stage === "0" ? [1, 2, 3, 4, 5] : [Number(stage)];
  return html`<div class="stack">
    <${Heading} data=${data} onCompare=${() => setCompare(true)} />
    <${Facts} request=${request} />
    ${request.error ? html`<p class="note bad"><${Said} text=${`${request.error}${request.error_message ? `: ${request.error_message}` : ""}`} /></p>` : null}
    <${Timeline} timings=${data.timings} request=${request} />
    <${Findings} data=${data} />
    <div class="row wrap"><${Choice} small label="Stage" value=${stage} onChange=${choose} options=${[["0", "All five"], ...STAGES.map((name, n) => [`${n + 1}`, `${n + 1} ${name}`])]} />
      <${Choice} small label="View" value=${view} onChange=${setView} options=${VIEWS} /></div>
    ${parts.length ? html`<${Parts} parts=${parts} picked=${picked} onPick=${setPicked} />` : null}
    ${why ? html`<p class="note">${why} <a href=${address("settings", "", { q: "gateway.record" })}>Change it</a></p>` : null}
    <div class=${stage === "0" ? "stages all" : "stages"}>${shown.map((n) => html`<${Stage} key=${n} id=${id} n=${n} info=${data.stages[n - 1]} here=${request.here} noted=${Boolean(why)} view=${view} part=${part} parts=${parts} onPick=${setPicked} version=${request.state === "running" ? version : "over"} />`)}</div>
    ${compare ? html`<${Compare} id=${id} previous=${data.previous} onClose=${() => setCompare(false)} />` : null}</div>`;
}

/** @param {{data: any, onCompare: () => void}} props */
function Heading({ data, onCompare }) {
  const { request } = data;
  const file = (/** @type {string} */ path) => new URL(`api/requests/${encodeURIComponent(request.id)}/${path}`, BASE).href;
  const curl = async () => { const made = await api(`requests/${encodeURIComponent(request.id)}/curl?format=curl`); await copy(made.text, "Copied as curl"); };
  const full = request.recorded === "full", why = full ? undefined : "its bytes were not recorded", closes = route.value.page === "live";
  return html`<div class="row">${closes ? html`<a class="button back" href=${address("live", "", route.value.query)} aria-label="Back to the list"><${Icon} name="back" /></a>` : null}
    <div class="grow"><h2 class="cut">${clientOf(request) || "a client"} → ${request.provider ? `${request.provider}/` : ""}${request.model || request.requested_model}</h2><div class="mono dim cut">${request.id}</div></div>
    ${closes ? html`<a class="button plain only-wide" href=${address("live", "", route.value.query)} aria-label="Close"><${Icon} name="close" /></a>` : null}</div>
    <div class="row wrap">${request.state === "running" ? html`<${Act} kind="danger" run=${() => api(`requests/${encodeURIComponent(request.id)}/cancel`, {})}><${Icon} name="stop" />Cancel</${Act}>` : null}
    <button disabled=${!full} title=${why} onClick=${() => attempt(curl)}><${Icon} name="copy" />Copy as curl</button>
    <button disabled=${!full} title=${why} onClick=${() => go("playground", "", { from: request.id })}><${Icon} name="playground" />Open in playground</button>
    <button disabled=${!full} title=${why} onClick=${onCompare}>Compare <kbd>c</kbd></button>
    ${full ? html`<a class="button" href=${file("exchange")} download title="What was sent and received upstream, as a file for toolwire run --replay"><${Icon} name="download" />Download for replay</a>` : null}</div>`;
}

/** @param {{request: any}} props */
function Facts({ request: one }) {
  const link = (/** @type {string} */ name, /** @type {string} */ value) => html`<a title=${value} href=${address("live", "", { f: `${name}:${value}` })}>${value.slice(0, 12)}</a>`;
  /** @type {[string, any][]} */
  const facts = [["", `${one.method} ${one.path}`], ["status", one.status || "–"], ["stop", one.stop_reason], ["in", count(one.input)], ["cached", one.cached ? count(one.cached) : ""], ["out", count(one.output)],
    ["reasoning", one.reasoning ? count(one.reasoning) : ""], ["cost", one.cost == null ? "" : `${money(one.cost)} (${one.cost_source})`], ["bytes", `${size(one.bytes_in)} in, ${size(one.bytes_out)} out`],
    ["retries", one.retries || ""], ["deployment", one.deployment ? html`<a href=${address("models", "", { q: one.deployment })}>${one.deployment}</a>` : ""], ["fallback", one.fallback ? "yes" : ""], ["key", one.key ? html`<a href=${address("keys", "", { q: one.key })}>${one.key}</a>` : ""], ["conversation", one.conversation ? link("conversation", one.conversation) : ""],
    ["client left", one.disconnected]];
  return html`<div class="facts">${facts.filter(([, value]) => value !== "" && value != null).map(([name, value]) => html`<span key=${name}>${name} <b>${value}</b></span>`)}</div>`;
}

/** @param {{timings: any, request: any}} props */
function Timeline({ timings, request }) {
  /** @type {[string, string, number][]} */
  const spans = [["admit", "wait", timings.admit], ["queue", "wait", timings.queue], ["upstream first event", "first", Math.max(0, (timings.first_event ?? timings.total) - timings.admit - timings.queue)], ["stream", "stream", timings.stream ?? 0]];
  const seen = spans.filter(([, , seconds]) => seconds > 0);
  const text = [...seen.map(([name, , seconds]) => `${name} ${span(seconds)}`), `overhead ${span(timings.overhead)}`, request.waited ? `waited ${span(request.waited)}` : ""].filter(Boolean).join(", ");
  return html`<div class="row"><div class="timeline grow" role="img" aria-label=${`Time: ${text}`}>${seen.map(([name, kind, seconds]) => html`<span class=${kind} title=${`${name} ${span(seconds)}`} style=${{ flex: `${Math.max(1, (1000 * seconds) / (timings.total || 1))} 1 0` }}>${seconds > timings.total * 0.12 ? `${name} ${span(seconds)}` : ""}</span>`)}</div>
    <span class="dim only-wide small">overhead ${span(timings.overhead)}</span></div>`;
}

/** @param {{data: any}} props */
function Findings({ data }) {
  const { losses, reattached, attempts } = data;
  if (!losses.length && !reattached.length && attempts.length < 2) return null;
  return html`<div class="panel"><div class="inside stack">
    ${losses.length ? html`<div><h3>Losses ${losses.length}</h3>${losses.map((/** @type {any} */ one) => html`<div class="row"><span class="warn">▲</span><span class="grow"><code>${visible(one.path)}</code> <span class="dim">${visible([one.what !== one.path ? one.what : "", one.why].filter(Boolean).join(": "))}</span></span></div>`)}</div>` : null}
    ${reattached.length ? html`<div><h3>Re-attached ${reattached.length}</h3>${reattached.map((/** @type {any} */ one) => html`<div class="row"><span class="good">↺</span><span class="grow">${visible(one.text)}</span></div>`)}</div>` : null}
    ${attempts.length > 1 ? html`<div><h3>Attempts ${attempts.length}</h3>${attempts.map((/** @type {any} */ one) => html`<div class="row"><span class=${one.error ? "bad" : "good"}>${one.error ? "✕" : "✓"}</span><span class="grow">${one.n}. ${one.deployment} <b>${one.status || ""}</b> ${span(one.seconds)} <span class="dim">${visible(one.error)}</span></span></div>`)}</div>` : null}</div></div>`;
}

/** Everything that can be marked in all stages. @param {{parts: Part[], picked: string, onPick: (key: string) => void}} props */
function Parts({ parts, picked, onPick }) {
  const names = { system: "system", tool: "tool", text: "text", thinking: "thinking", call: "call", result: "result" };
  const [all, setAll] = useState(false);
  const order = useMemo(() => [...parts].sort((a, b) => Number(b.kind === "call") - Number(a.kind === "call")), [parts]);
  const shown = all ? order : order.slice(0, 12);
  return html`<div class="row wrap gap4" role="group" aria-label="Parts, marked in every stage">${shown.map((one) => html`<button key=${one.key} class="small" aria-pressed=${one.key === picked} onClick=${() => onPick(one.key === picked ? "" : one.key)}>
    <span class="dim">${names[/** @type {keyof typeof names} */ (one.kind)] ?? one.kind}</span> ${visible(one.label).slice(0, 40)}</button>`)}
    ${order.length > shown.length ? html`<button class="small plain" onClick=${() => setAll(true)}>${order.length - shown.length} more</button>` : null}</div>`;
}

/** @param {{id: string, n: number, info: any, here: boolean, noted: boolean, view: string, part: Part | null, parts: Part[], onPick: (key: string) => void, version: unknown}} props */
function Stage({ id, n, info, here, noted, view, part, parts, onPick, version }) {
  const path = `requests/${encodeURIComponent(id)}/stage/${n}`;
  const { data, error } = useData(info.available || here ? path : null, version);
  const [rest, setRest] = useState("");
  const [loading, setLoading] = useState(false);
  useEffect(() => setRest(""), [data]);
  const text = data?.text == null ? null : data.text + rest;
  const left = data ? data.size - data.from - bytes(data.text ?? "") - bytes(rest) : 0;
  const partial = Boolean(data?.truncated) && left > 0;
  const { doc, done } = useDocument(data?.document && !partial ? text : null);
  const pointers = part?.at?.[n] ?? [];
  const lit = part?.frames?.[n] ?? [];
  const more = async () => {
    setLoading(true);
    await attempt(async () => {
      let from = bytes(data.text) + bytes(rest), read = rest;
      while (from < data.size) {
        const piece = await api(`${path}?from=${data.from + from}&size=4194304`);
        if (!piece.text) break;
        read += piece.text;
        from += bytes(piece.text);
      }
      setRest(read);
    });
    setLoading(false);
  };
  const pick = (/** @type {string} */ pointer) => {
    const found = parts.filter((one) => one.at?.[n]?.some((at) => pointer === at || pointer.startsWith(`${at}/`)));
    onPick(found.length ? found[found.length - 1].key : "");
  };
  const mode = view === "frames" && !data?.frames?.length ? "text" : view === "tree" && !doc ? (data?.frames?.length ? "frames" : "text") : view;
  return html`<section class="stage" aria-label=${`${n} ${STAGES[n - 1]}`}><header><b class="grow cut">${n} ${STAGES[n - 1]}</b><span class="dim mono cut">${data?.format ?? info.format ?? ""}</span><span class="dim mono">${info.size ? size(info.size) : ""}</span>
      ${data?.text != null ? html`<a href=${new URL(`api/${path}?download=1`, BASE).href} download aria-label=${`Download ${STAGES[n - 1]}`}><${Icon} name="download" /></a>` : null}</header>
    <div class="content" tabindex="0">${error ? html`<${Failed} text=${error} />` : null}
      ${!info.available && !data ? html`<p class="dim">${noted ? "not recorded" : info.why || "not recorded"}</p>` : null}
      ${data && data.text == null && !data.base64 ? html`<${Shape} data=${data} noted=${noted} />` : null}
      ${data?.base64 ? html`<p class="dim">not text: ${size(data.size)}</p><pre>${data.base64.slice(0, 2000)}</pre>` : null}
      ${text == null ? null : mode === "frames" ? html`<${Frames} text=${text} frames=${data.frames} lit=${lit} onPick=${(/** @type {number} */ i) => onPick(parts.find((one) => one.frames?.[n]?.includes(i))?.key ?? "")} />`
        : mode === "tree" && doc ? html`<${Tree} doc=${doc} picked=${pointers} onPick=${pick} />`
          : mode === "raw" ? html`<${Raw} data=${data} text=${text} />` : data.document && !partial && !done ? html`<p class="dim">reading…</p>` : html`<${Readable} doc=${doc} text=${text} picked=${pointers} />`}
      ${partial ? html`<p><button class="small" disabled=${loading} onClick=${more}>${loading ? "Loading…" : `Load the rest (${size(left)})`}</button></p>` : null}
      ${data?.cut ? html`<p class="dim">the record stops here: larger bodies are cut</p>` : null}</div></section>`;
}

const encoder = new TextEncoder();
/** @param {string} text */
const bytes = (text) => encoder.encode(text).length;

/** @param {{data: any, text: string}} props */
const Raw = ({ data, text }) => html`${data.head ? html`<div class="said mono dim">${visible([data.head.line, ...data.head.fields.map((/** @type {string[]} */ field) => field.join(": "))].join("\n"))}</div><br />` : null}<${Said} text=${text} mono />`;

/** @param {{text: string, frames: any[], lit: number[], onPick: (index: number) => void}} props */
function Frames({ text, frames, lit, onPick }) {
  const [most, setMost] = useState(200);
  const raw = useMemo(() => encoder.encode(text), [text]);
  const decoder = useMemo(() => new TextDecoder(), []);
  const shown = Math.max(most, ...lit.map((i) => i + 1));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => reveal(box.current?.querySelector(".lit-up")), [lit.join()]);
  return html`<div class="frames" ref=${box}>${frames.slice(0, shown).map((one) => html`<span key=${`t${one.i}`} title=${one.event}>${(one.at * 1000).toFixed(0)} ms</span><pre key=${one.i} class=${lit.includes(one.i) ? "pick lit-up" : "pick"} onClick=${() => onPick(one.i)}>${visible(decoder.decode(raw.subarray(one.start, Math.min(one.end, one.start + 4000))).trim())}</pre>`)}</div>
    ${frames.length > shown ? html`<button class="small" onClick=${() => setMost(most + 1000)}>Show more (${frames.length - shown} left)</button>` : null}`;
}

/** Sizes and names, where the contents are not recorded. @param {{data: any, noted: boolean}} props */
function Shape({ data, noted }) {
  const shape = data.shape;
  return html`<div class="stack">${noted ? (shape ? null : html`<p class="dim">${data.size ? size(data.size) : "not recorded"}</p>`) : html`<p class="dim">${data.why || "nothing was recorded"}</p>`}
    ${shape ? html`<div class="tree">${shape.system ? html`<div>system <span class="dim">${size(shape.system)}</span></div>` : null}
      ${shape.tools?.length ? html`<details><summary>tools <span class="dim">(${shape.tools.length})</span></summary>${shape.tools.map((/** @type {any} */ one) => html`<div class="leaf">${visible(one.name)} <span class="dim">${size(one.size)}</span></div>`)}</details>` : null}
      ${shape.messages?.length ? html`<details open><summary>messages <span class="dim">(${shape.messages.length})</span></summary>${shape.messages.slice(-100).map((/** @type {any} */ one) => html`<div class="leaf">${one.role}: <span class="dim">${one.parts.map((/** @type {any} */ part) => `${part.kind} ${size(part.size)}`).join(", ")}</span></div>`)}</details>` : null}
      ${shape.events ? html`<div>events <span class="dim">${Object.entries(shape.events).map(([name, n]) => `${name} ${n}`).join(", ")}</span></div>` : null}</div>` : null}</div>`;
}

/** Bytes around a difference, marked from where it begins. @param {{text: string, other: string}} props */
function From({ text, other }) {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  return html`<pre class="note">${visible(text.slice(0, at))}<mark class="lit-up">${visible(text.slice(at)) || "(ends here)"}</mark></pre>`;
}

/** @param {{id: string, previous: string | null, onClose: () => void}} props */
function Compare({ id, previous, onClose }) {
  const [other, setOther] = useState(previous ?? "");
  const recent = useData("requests?limit=50");
  const { data, error } = useData(other ? `requests/compare?a=${encodeURIComponent(other)}&b=${encodeURIComponent(id)}` : null);
  const rows = (recent.data?.requests ?? []).filter((/** @type {any} */ one) => one.id !== id);
  return html`<${Dialog} title="Compare with an earlier request" onClose=${onClose}>
    <label class="field">Other request<select value=${other} onChange=${(/** @type {any} */ event) => setOther(event.target.value)}><option value="">choose one</option>
      ${previous ? html`<option value=${previous}>the turn before in this conversation</option>` : null}${rows.map((/** @type {any} */ one) => html`<option value=${one.id}>${one.client || "client"} · ${one.model || one.requested_model} · ${one.id.slice(-8)}</option>`)}</select></label>
    ${error ? html`<${Failed} text=${error} />` : null}
    ${data ? html`<p>${data.same ? "What was sent upstream is the same, byte for byte." : html`The first <b>${count(data.common)}</b> bytes are the same (${count(data.messages_equal)} messages); they differ at byte <b>${count(data.first_difference)}</b>${data.path ? html`, in <code>${visible(data.path)}</code>` : null}.`}</p>
      ${data.same ? null : html`<h3>earlier</h3><${From} text=${data.a_context} other=${data.b_context} /><h3>this one</h3><${From} text=${data.b_context} other=${data.a_context} />`}` : null}</${Dialog}>`;
}
