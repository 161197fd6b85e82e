// Live requests: the list, its filter, and the request that is open.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { useFeed } from "../feed.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keyboard.js";
import { VirtualList } from "../list.js";
import { Empty, Failed, Top } from "../parts.js";
import { go, route, useTyped } from "../route.js";
import { Rows } from "../rows.js";
import { count, moment, money, span, when } from "../text.js";

/** @type {Record<string, string>} */
const NAMES = { cost: "min_cost", time: "min_time", tokens: "min_tokens", losses: "loss" };
const KNOWN = new Set("client model provider route key format upstream via status state error conversation loss min_cost min_time min_tokens since until".split(" "));

/** A day, or a day and a time, as Unix seconds. @param {string} text */
const seconds = (text) => (/^\d+$/.test(text) || isNaN(Date.parse(text)) ? text : String(new Date(text.includes("T") ? text : `${text}T00:00`).getTime() / 1000));

/** The filter as parameters: `client:codex loss:>0 words`. @param {string} text */
export function parameters(text) {
  const out = new URLSearchParams(), rest = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [, name, value] = /^(\w+):(.+)$/.exec(word) ?? [];
    const key = name && (NAMES[name] ?? name);
    if (key && KNOWN.has(key)) out.append(key, key.startsWith("min_") ? value.replace(/^[>=]+/, "") : /^(since|until)$/.test(key) ? seconds(value) : value);
    else rest.push(word);
  }
  if (rest.length) out.set("q", rest.join(" "));
  const made = out.toString();
  return made ? `&${made}` : "";
}

export default function Live() {
  const { id, query } = route.value;
  const text = query.f ?? "";
  const [typed, setTyped] = useTyped("f");
  const rows = useMemo(() => new Rows(parameters(text)), [text]);
  const [top, setTop] = useState(true);
  const [jump, setJump] = useState(0);
  const [selected, setSelected] = useState("");
  const [new_, setNew] = useState(0);
  const [bottom, setBottom] = useState(false);
  const server = useRef("");
  useEffect(() => { rows.load(); }, [rows]);
  useFeed(`live?topics=requests,questions${rows.filters}`, {
    hello: (data) => {
      // After a restart, events in between may be in the ledger alone.
      if (server.current && server.current !== data.server) rows.load();
      server.current = data.server;
      if (rows.loaded) rows.settle(data.running);
    },
    requests: (data) => { const more = rows.unseen(data.requests); if (!top) setNew((n) => n + more); rows.add(data.requests); },
    dropped: () => { rows.load(); },
  });
  void rows.version.value;
  const [tick, setTick] = useState(0);
  const running = rows.rows.length > 0 && rows.rows.slice(-50).some((one) => one.state === "running");
  useEffect(() => { if (!running) return undefined; const timer = setInterval(() => setTick((n) => n + 1), 500); return () => clearInterval(timer); }, [running]);
  void tick;

  const current = id || selected;
  const index = current ? rows.index(current) : -1;
  const follow = () => { setJump((n) => n + 1); setNew(0); setTop(true); };
  useKeys({ ".": () => rows.pause(!rows.paused) });
  const fresh = rows.paused ? rows.unseen(rows.waiting) : top ? 0 : new_;
  return html`<${Top} title="Live requests"><span class="dim only-wide" title="since the gateway was started">${count(rows.seen)} seen</span>
      <div class="filter" role="search"><${Icon} name="search" /><input type="search" aria-label="Filter requests" placeholder="client:codex model:gemini status:error loss:>0" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /><kbd>/</kbd></div>
      <button aria-pressed=${rows.paused} onClick=${() => rows.pause(!rows.paused)}>${rows.paused ? "Resume" : "Pause"} <kbd>.</kbd></button></${Top}>
    <div class=${id ? "split open" : "split"}>
      <section class="list" aria-label="Requests">
        <div class="vhead requests"><span>time</span><span class="c-client">client</span><span class="c-model">model</span><span class="c-via">via</span><span class="num c-tokens">tokens</span><span class="num c-time">time</span><span class="num">cost</span><span class="num c-loss">loss</span></div>
        ${fresh ? html`<button class="newer small main" onClick=${() => { rows.pause(false); follow(); }}>${fresh} new ↑</button>` : null}
        ${rows.error ? html`<${Failed} text=${rows.error} />` : null}
        ${rows.rows.length ? html`<${VirtualList} total=${rows.rows.length} kind="requests" label="Requests" selected=${index} version=${`${rows.version.value} ${tick}`} shifted=${rows.shifted} toTop=${jump}
            row=${(/** @type {number} */ n) => html`<${Cells} row=${rows.at(n)} />`} onSelect=${(/** @type {number} */ n) => { const one = rows.at(n); setSelected(one.id); if (id) go("live", one.id, query); }}
            onOpen=${(/** @type {number} */ n) => go("live", rows.at(n).id, query)} onTop=${(/** @type {boolean} */ now) => { setTop(now); if (now) setNew(0); }}
            onRange=${(/** @type {number} */ _, /** @type {number} */ last) => { setBottom(last > rows.rows.length - 400); if (last > rows.rows.length - 400) rows.older(); }} />`
          : rows.loaded && !rows.error ? html`<${Nothing} filtered=${text} />` : null}
        ${rows.loading ? html`<div class="loading">loading older requests…</div>` : rows.full && bottom ? html`<div class="loading">${count(rows.rows.length)} requests are listed; until:2026-01-31 in the filter lists older ones</div>` : null}
      </section>
      ${id ? html`<${Detail} id=${id} row=${rows.byId.get(id)} key=${id} recording=${rows.recording} />` : null}
    </div>`;
}

/** @type {Promise<any> | null} */
let detail = null;

/** @param {{id: string, row: any, recording: string}} props */
function Detail({ id, row, recording }) {
  const [page, setPage] = useState(/** @type {any} */ (null));
  useEffect(() => { detail ??= import("./request.js"); detail.then((module) => setPage({ View: module.Request })); }, []);
  return html`<section class="detail" aria-label="Request">${page ? html`<${page.View} id=${id} version=${row?.n ?? 0} recording=${recording} />` : null}</section>`;
}

/** @param {{row: import("../rows.js").Row}} props */
function Cells({ row }) {
  if (!row) return null;
  const running = row.state === "running";
  const mark = running ? html`<span class="pulse" aria-label="running"></span>` : row.error ? html`<span class="bad" aria-label="failed">✕</span>` : null;
  const seconds = running ? Math.max(0, Date.now() / 1000 - row.time) : row.duration;
  return html`<span class="mono dim" title=${moment(row.time)}>${when(row.time)}</span><span class="c-client">${row.client || html`<span class="dim">unknown</span>`}</span>
    <span title=${row.error || row.model}><span class="mark">${mark}</span> ${row.model}${row.error ? html` <span class="bad">${row.error}</span>` : null}</span>
    <span class="c-via dim">${row.via}</span><span class="num c-tokens">${row.tokens ? count(row.tokens) : "–"}</span><span class="num c-time">${running ? html`<span class="dim" title=${row.phase}>${seconds.toFixed(0)} s…</span>` : span(seconds)}</span>
    <span class="num">${running ? "…" : money(row.cost)}</span><span class="num c-loss">${row.losses ? html`<span class="warn" title=${`${row.losses} losses`}>▲${row.losses}</span>` : null}</span>`;
}

/** @param {{filtered: string}} props */
const Nothing = ({ filtered }) => filtered ? html`<${Empty} icon="search" title="No request matches">Filter by client, model, provider, via, status, state, route, key, tokens, time, cost or loss (<code>cost:0.01</code> is at least that), <code>since:</code> or <code>until:</code> a day, or any word.</${Empty}>`
  : html`<${Empty} icon="live" title="Waiting for the first request">Point a client at this gateway, or ask a model in the <a href="#/playground">playground</a>.
    <pre class="note">ANTHROPIC_BASE_URL=${location.origin} ANTHROPIC_AUTH_TOKEN=… claude</pre></${Empty}>`;
