// Sessions: all of them, the transcript of one as it grows, and the inbox of open questions.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { api, attempt, BASE, say, useData } from "../api.js";
import { changed, questions, useFeed } from "../feed.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keyboard.js";
import { Act, Dialog, Empty, Failed, Reply, Said, Top } from "../parts.js";
import { Diff, Question } from "../question.js";
import { address, go, route, useTyped } from "../route.js";
import { ago, money, span, visible, within } from "../text.js";
import { Transcript } from "../transcript.js";

export default function Sessions() {
  const { id, query } = route.value;
  const [typed, setTyped] = useTyped("q");
  const list = useData(`sessions?limit=100${query.q ? `&q=${encodeURIComponent(query.q)}` : ""}`);
  const [older, setOlder] = useState(/** @type {any[]} */ ([]));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  useEffect(() => { setOlder([]); setNext(list.data?.next ?? null); }, [list.data]);
  const rows = useMemo(() => {
    const found = new Map([...(list.data?.sessions ?? []), ...older].map((/** @type {any} */ one) => [one.id, one]));
    for (const one of Object.values(changed.value)) if (found.has(one.id) || !query.q) found.set(one.id, one);
    return [...found.values()].sort((a, b) => rank(a) - rank(b) || b.updated - a.updated);
  }, [list.data, older, changed.value, query.q]);
  const at = rows.findIndex((one) => one.id === id);
  const move = (/** @type {number} */ step) => { const one = rows[Math.max(0, Math.min(rows.length - 1, at + step))]; if (one) go("sessions", one.id, query); };
  useKeys({ j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), c: () => go("sessions", "new", query) });
  const more = () => attempt(async () => { const page = await api(`sessions?limit=100&before=${encodeURIComponent(/** @type {string} */ (next))}`); setOlder([...older, ...page.sessions]); setNext(page.next); });
  const open = questions.value.length;
  return html`<${Top} title="Sessions"><div class="filter" role="search"><${Icon} name="search" /><input type="search" aria-label="Search sessions" placeholder="Search titles and messages" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /><kbd>/</kbd></div>
      <a class="button" href=${address("sessions", "questions")}>Questions ${open ? html`<span class="chip warn">${open}</span>` : null}</a><button class="main" onClick=${() => go("sessions", "new", query)}><${Icon} name="plus" />New<span class="only-wide"> session</span></button></${Top}>
    <div class=${id && id !== "new" ? "two open" : "two"}><section class="side" aria-label="Sessions">${list.error ? html`<${Failed} text=${list.error} />` : null}
        ${rows.map((one) => html`<a key=${one.id} class="entry" href=${address("sessions", one.id, query)} aria-current=${one.id === id ? "true" : undefined}><div class="cut">${mark(one)}${visible(one.title || "(no title)")}</div>
          <div class="row"><span class="grow cut">${state(one)}</span><span>${one.cost ? money(one.cost) : ""}</span></div></a>`)}
        ${list.data && !rows.length ? html`<${Empty} icon="sessions" title="No sessions yet">Start one here, or with <code>toolwire</code> in a terminal.</${Empty}>` : null}
        ${next ? html`<button class="plain" onClick=${more}>Show older</button>` : null}</section>
      <section class="main" aria-label="Session">${id === "questions" ? html`<${Inbox} />` : id && id !== "new" ? html`<${Session} id=${id} key=${id} />` : html`<${Empty} icon="sessions" title="Choose a session">Every session of this machine is here, also those that run in a terminal.</${Empty}>`}</section></div>
    ${id === "new" ? html`<${NewSession} />` : null}`;
}

/** @param {any} one */
const rank = (one) => ({ waiting: 0, running: 1, idle: 2, held: 2 }[/** @type {string} */ (one.state)] ?? 3);
/** @param {any} one */
const mark = (one) => one.state === "waiting" ? html`<span class="pulse ask"></span> ` : one.state === "running" ? html`<span class="pulse"></span> ` : null;
/** @param {any} one */
const state = (one) => one.state === "waiting" ? html`<span class="warn">waiting for you</span>` : one.state === "running" ? "working" : one.state === "held" ? "in another process" : ago(one.updated);

function Inbox() {
  const all = questions.value;
  const [at, setAt] = useState(0);
  const active = Math.min(at, all.length - 1);
  useKeys({ j: () => setAt(Math.min(active + 1, all.length - 1)), k: () => setAt(Math.max(0, active - 1)) });
  return html`<div class="transcript"><div class="row"><a class="button back" href="#/sessions" aria-label="Back to the list"><${Icon} name="back" /></a><h2>Open questions of all sessions</h2></div>
    ${all.map((one, n) => html`<${Question} key=${one.id} question=${one} active=${n === active} titled />`)}
    ${all.length ? null : html`<${Empty} icon="sessions" title="Nothing waits for you">Questions of every session come here.</${Empty}>`}</div>`;
}

/** @param {{id: string}} props */
function Session({ id }) {
  const path = `sessions/${encodeURIComponent(id)}`;
  const { data, error, set } = useData(path);
  const script = useMemo(() => new Transcript(), []);
  const [version, setVersion] = useState(0);
  const [row, setRow] = useState(/** @type {any} */ (null));
  const frame = useRef(0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const stick = useRef(true);
  const draw = () => { if (!frame.current) frame.current = requestAnimationFrame(() => { frame.current = 0; setVersion((n) => n + 1); }); };
  useFeed(`${path}/events?after=0`, {
    records: (found) => { script.read(found.records); draw(); }, partial: (found) => { script.partial(found); draw(); }, pieces: (found) => { script.pieces(found.pieces); draw(); },
    session: (found) => setRow(found.session),
  });
  useLayoutEffect(() => { const element = box.current; if (element && stick.current) element.scrollTop = element.scrollHeight; }, [version, questions.value]);
  const one = row ?? data?.session;
  const mine = questions.value.filter((question) => question.session === id);
  const asked = new Set(mine.map((question) => question.call_id));
  void set;
  if (error && !one) return html`<div class="transcript"><${Failed} text=${error} /></div>`;
  if (!one) return null;
  return html`<${SessionHead} one=${one} />
    <div class="transcript" ref=${box} tabindex="0" aria-label="Transcript" role="region" onScroll=${(/** @type {any} */ event) => { const element = event.target; stick.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40; }}>
      ${(data?.notices ?? []).map((/** @type {string} */ text) => html`<p class="note">${visible(text)}</p>`)}
      <${Items} script=${script} version=${version} asked=${asked} project=${one.project} />
      <${Streaming} script=${script} version=${version} />
      ${mine.map((question, n) => html`<${Question} key=${question.id} question=${question} active=${n === 0} />`)}</div>
    <${Say} one=${one} />`;
}

/** @param {{one: any}} props */
function SessionHead({ one }) {
  const [fork, setFork] = useState(false);
  const path = `sessions/${encodeURIComponent(one.id)}`;
  const export_ = (/** @type {string} */ format) => new URL(`api/${path}/export?format=${format}`, BASE).href;
  return html`<header class="bar-head"><a class="button back" href="#/sessions" aria-label="Back to the list"><${Icon} name="back" /></a>
    <div class="grow"><h2 class="cut">${visible(one.title || "(no title)")}</h2><div class="dim cut">${[one.project, one.model, one.mode && `${one.mode} mode`, one.cost != null ? money(one.cost) : ""].filter(Boolean).join(" · ")}</div></div>
    <button class="only-wide" onClick=${() => setFork(true)}><${Icon} name="fork" />Fork</button><a class="button only-wide" href=${export_("markdown")} download><${Icon} name="download" />Export</a>
    ${fork ? html`<${Fork} one=${one} onClose=${() => setFork(false)} />` : null}</header>`;
}

/** @param {{one: any, onClose: () => void}} props */
function Fork({ one, onClose }) {
  const { data } = useData(`sessions/${encodeURIComponent(one.id)}`);
  const turns = data?.turns ?? [];
  const [upto, setUpto] = useState("");
  const run = async () => {
    const made = await api(`sessions/${encodeURIComponent(one.id)}/fork`, upto ? { upto: Number(upto) } : {});
    onClose();
    go("sessions", made.session.id);
  };
  return html`<${Dialog} title="Fork this session" onClose=${onClose} footer=${html`<button onClick=${onClose}>Cancel</button><${Act} kind="main" run=${run}>Fork</${Act}>`}>
    <p class="dim">The fork has everything up to that point; this session stays as it is.</p>
    <label class="field">Up to<select value=${upto} onChange=${(/** @type {any} */ event) => setUpto(event.target.value)}><option value="">the end</option>${turns.map((/** @type {any} */ turn) => html`<option value=${turn.seq}>after: ${visible(turn.text).slice(0, 60)}</option>`)}</select></label></${Dialog}>`;
}

const SHOWN = 300;

/** @param {{script: Transcript, version: number, asked: Set<string>, project: string}} props */
function Items({ script, asked, project }) {
  const [most, setMost] = useState(SHOWN);
  const items = script.items.slice(-most);
  return html`${script.items.length > items.length ? html`<button class="small" onClick=${() => setMost(most + SHOWN)}>Show ${Math.min(SHOWN, script.items.length - items.length)} earlier</button>` : null}
    ${items.map((item) => html`<${Entry} key=${item.key} item=${item} call=${item.call} asked=${Boolean(item.call && asked.has(item.call.id))} project=${project} />`)}`;
}

/** @param {{item: import("../transcript.js").Item, call?: import("../transcript.js").Call, asked: boolean, project: string}} props */
function Entry({ item, call, asked, project }) {
  if (call) return html`<${Call} call=${call} asked=${asked} project=${project} />`;
  if (item.kind === "user") return html`<div class="turn user"><span class="who" aria-label="You">Y</span><div><${Said} text=${item.text} /></div></div>`;
  if (item.kind === "reply") return html`<div class="turn"><span class="who" aria-label="Model">M</span><div><${Reply} text=${item.text} /></div></div>`;
  if (item.kind === "thinking") return html`<${Fold} title="Thinking" text=${item.text} />`;
  if (item.kind === "context") return html`<${Fold} title="Context from toolwire" text=${item.text} />`;
  return html`<p class=${item.kind === "end" ? "note warn" : "note"}><${Said} text=${item.text} /></p>`;
}

/** @param {{title: string, text: string}} props */
function Fold({ title, text }) {
  const [open, setOpen] = useState(false);
  return html`<details class="call faint" onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary><span class="dim grow cut">${title}${open ? "" : html`: ${visible(text.slice(0, 120))}`}</span></summary>${open ? html`<div class="inside dim"><${Said} text=${text} /></div>` : null}</details>`;
}

/** @type {Record<string, [string, string, string]>} */
const STATES = { wanted: ["…", "dim", "requested"], running: ["", "", "running"], done: ["✓", "good", "done"], failed: ["✕", "bad", "failed"], denied: ["⊘", "warn", "denied"] };

/** @param {{call: import("../transcript.js").Call, asked: boolean, project: string}} props */
function Call({ call, asked, project }) {
  const [chosen, setChosen] = useState(/** @type {boolean | null} */ (null));
  // Output is shown as it comes, unless the reader closed it.
  const open = chosen ?? (call.state === "running" && call.output !== "");
  const [all, setAll] = useState(false);
  const [sign, kind, title] = STATES[call.state];
  const tail = all ? call.output : call.output.slice(-4000);
  return html`<details class="call" open=${open}><summary onClick=${(/** @type {Event} */ event) => { event.preventDefault(); setChosen(!open); }}><b>${visible(call.name)}</b><span class="mono dim grow cut">${visible(within(brief(call.arguments), project))}</span>
      ${call.diff ? html`<span class="mono"><span class="good">+${call.added}</span> <span class="bad">−${call.removed}</span></span>` : null}
      ${asked ? html`<span class="chip warn">waits for you</span>` : call.state === "running" ? html`<span class="pulse" aria-label="running"></span>` : html`<span class=${kind} aria-label=${title}>${sign}</span>`}${call.seconds ? html`<span class="dim">${span(call.seconds)}</span>` : null}</summary>
    ${open ? html`<div class="inside"><pre class="dim">${visible(call.arguments.slice(0, 20000))}</pre>${call.diff ? html`<${Diff} diff=${call.diff} side=${localStorage.getItem("diff") === "side"} />` : null}
      ${call.output && !call.diff ? html`<div class="tail mono"><${Said} text=${tail} mono /></div>${tail.length < call.output.length ? html`<button class="small" onClick=${() => setAll(true)}>Show all</button>` : null}` : null}</div>` : null}</details>`;
}

/** The first argument worth a line. @param {string} text */
function brief(text) {
  try {
    const read = JSON.parse(text);
    const first = read.file_path ?? read.absolute_path ?? read.path ?? read.command ?? read.pattern ?? read.query ?? read.url ?? Object.values(read)[0];
    return typeof first === "string" ? first.split("\n")[0].slice(0, 160) : first === undefined ? "" : JSON.stringify(first).slice(0, 160);
  } catch {
    return text.slice(0, 160);
  }
}

/** @param {{script: Transcript, version: number}} props */
function Streaming({ script }) {
  return html`${script.thinking ? html`<${Fold} title="Thinking" text=${script.thinking} />` : null}
    ${script.text ? html`<div class="turn"><span class="who" aria-label="Model">M</span><div><${Said} text=${script.text} /></div></div>` : null}
    ${[...script.begun].filter(([id]) => !script.calls.has(id)).map(([id, one]) => html`<div key=${id} class="call"><div class="inside mono"><b>${visible(one.name)}</b> ${visible(one.arguments.slice(-400))}</div></div>`)}`;
}

/** @param {{one: any}} props */
function Say({ one }) {
  const [text, setText] = useState("");
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const path = `sessions/${encodeURIComponent(one.id)}`;
  useKeys({ i: () => box.current?.focus() });
  const send = async () => {
    if (!text.trim()) return;
    await api(`${path}/say`, { text });
    setText("");
  };
  const busy = one.state === "running" || one.state === "waiting";
  if (one.state === "held") return html`<div class="say"><p class="dim grow">${one.held_by?.text ?? "open in another process"}</p></div>`;
  return html`<div class="say"><textarea ref=${box} rows="1" aria-label="Message" placeholder=${busy ? "Say something while it works…" : "Say something…"} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send().catch((error) => say(error.message, true)); } }}></textarea>
    <${Act} kind="main" disabled=${!text.trim()} run=${send}>Send</${Act}>${busy ? html`<${Act} kind="danger" run=${() => api(`${path}/stop`, {})}><${Icon} name="stop" />Stop</${Act}>` : null}</div>`;
}

function NewSession() {
  const { data } = useData("projects");
  const models = useData("models");
  const [form, setForm] = useState({ prompt: "", project: "", model: "", mode: "default" });
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setForm({ ...form, [name]: event.target.value });
  const close = () => { if (route.value.id === "new") go("sessions", "", route.value.query); };
  const run = async () => {
    const body = Object.fromEntries(Object.entries(form).filter(([, value]) => value));
    const made = await api("sessions", body);
    go("sessions", made.session.id);
  };
  return html`<${Dialog} title="New session" onClose=${close} footer=${html`<button onClick=${close}>Cancel</button><${Act} kind="main" disabled=${!form.prompt.trim()} run=${run}>Start</${Act}>`}>
    <label class="field">What should be done?<textarea rows="4" autofocus value=${form.prompt} onInput=${set("prompt")} onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) attempt(run); }}></textarea></label>
    <label class="field">Folder<input list="projects" placeholder=${data?.default ?? ""} value=${form.project} onInput=${set("project")} /><datalist id="projects">${(data?.projects ?? []).map((/** @type {string} */ one) => html`<option value=${one}></option>`)}</datalist></label>
    <div class="fields"><label class="field">Model<input list="model-names" placeholder="default" value=${form.model} onInput=${set("model")} /><datalist id="model-names">${(models.data?.names ?? []).map((/** @type {any} */ one) => html`<option value=${one.model}></option>`)}</datalist></label>
      <label class="field">Approval<select value=${form.mode} onChange=${set("mode")}><option value="default">ask before changes</option><option value="auto_edit">edits without asking</option><option value="plan">plan only</option><option value="yolo">never ask</option></select></label></div></${Dialog}>`;
}
