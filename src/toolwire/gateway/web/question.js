// A question whether a call may run: what it would do, why it is asked, and the answers.
import { html, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { api, connected, say } from "./api.js";
import { marked as wordMarks, unified } from "./diff.js";
import { questions } from "./feed.js";
import { useKeys } from "./keyboard.js";
import { Act, Choice, Dialog, Said } from "./parts.js";
import { ago, topic, visible, within } from "./text.js";

const FOLD = 400;

/** @param {{text: string, marks?: [number, number][]}} props */
function Marked({ text, marks }) {
  if (!marks?.length) return html`<span>${visible(text)}</span>`;
  const out = [];
  let at = 0;
  for (const [from, to] of marks) {
    out.push(visible(text.slice(at, from)), html`<mark>${visible(text.slice(from, to))}</mark>`);
    at = to;
  }
  return html`<span>${out}${visible(text.slice(at))}</span>`;
}

/** Words that differ are marked also in a diff that came as text. @param {string} diff */
function marked(diff) {
  const read = unified(diff);
  /** @type {import("./diff.js").Line[]} */
  const out = [];
  for (let n = 0; n < read.length;) {
    const gone = [], come = [];
    while (read[n]?.kind === "del") gone.push(read[n++]);
    while (read[n]?.kind === "add") come.push(read[n++]);
    if (!gone.length && !come.length) { out.push(read[n++]); continue; }
    const [left, right] = wordMarks(gone.map((one) => one.text), come.map((one) => one.text));
    gone.forEach((one, at) => out.push({ ...one, marks: left.get(at) }));
    come.forEach((one, at) => out.push({ ...one, marks: right.get(at) }));
  }
  return out;
}

/** @param {{diff: string, side: boolean}} props */
export function Diff({ diff, side }) {
  const all = useMemo(() => marked(diff), [diff]);
  const [open, setOpen] = useState(false);
  const shown = open ? all : all.slice(0, FOLD);
  const fold = all.length > shown.length ? html`<button class="fold" onClick=${() => setOpen(true)}>Show ${all.length - shown.length} more lines</button>` : null;
  if (!side) return html`<div class="diff" role="region" aria-label="Changes" tabindex="0">${shown.map((one, n) => one.kind === "hunk" ? html`<div key=${n} class="dl hunk" role="separator"></div>` : html`<div key=${n} class=${`dl ${one.kind}`}><i>${one.old || ""}</i><i>${one.new || ""}</i><b aria-label=${one.kind === "add" ? "added" : one.kind === "del" ? "removed" : undefined}>${one.kind === "add" ? "+" : one.kind === "del" ? "−" : ""}</b><${Marked} ...${one} /></div>`)}${fold}</div>`;
  return html`<div class="diff side" role="region" aria-label="Changes side by side" tabindex="0">${pairs(shown).map(([left, right], n) => left?.kind === "hunk" ? html`<div key=${n} class="dl hunk" role="separator"></div>` : html`<div key=${n} class="dl"><${Half} one=${left} number="old" /><${Half} one=${right} number="new" /></div>`)}${fold}</div>`;
}

/** @param {{one?: any, number: string}} props */
const Half = ({ one, number }) => one ? html`<i class=${one.kind}>${one[number] || ""}</i><b class=${one.kind}>${one.kind === "add" ? "+" : one.kind === "del" ? "−" : ""}</b><span class=${one.kind}><${Marked} ...${one} /></span>` : html`<i class="none"></i><b class="none"></b><span class="none"></span>`;

/** @param {import("./diff.js").Line[]} all @returns {[any, any][]} */
function pairs(all) {
  /** @type {[any, any][]} */
  const out = [];
  for (let n = 0; n < all.length;) {
    if (all[n].kind === "same" || all[n].kind === "hunk") { out.push([all[n], all[n]]); n++; continue; }
    const gone = [], come = [];
    while (all[n]?.kind === "del") gone.push(all[n++]);
    while (all[n]?.kind === "add") come.push(all[n++]);
    for (let at = 0; at < Math.max(gone.length, come.length); at++) out.push([gone[at], come[at]]);
  }
  return out;
}

/** @param {{question: any, active: boolean, titled?: boolean}} props `active`: its keys work */
export function Question({ question, active, titled }) {
  const { details, choices } = question;
  const [side, setSide] = useState(localStorage.getItem("diff") === "side");
  const [editing, setEditing] = useState(false);
  const [text, setText] = useState(question.content ?? "");
  const [dialog, setDialog] = useState("");
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const can = (/** @type {string} */ name) => choices.includes(name);
  const answer = async (/** @type {Record<string, unknown>} */ body) => {
    try {
      await api(`questions/${encodeURIComponent(question.id)}`, body);
      setDialog("");
    } catch (error) {
      const state = /** @type {any} */ (error).body?.state;
      if (state) say(state === "replaced" ? "the file changed since: here is the question again" : `this question was ${state} already`, true);
      else throw error;
    }
    questions.value = questions.value.filter((one) => one.id !== question.id);
  };
  const once = () => answer({ choice: "once", ...(editing && text !== question.content ? { content: text } : {}) });
  const attempt = (/** @type {() => Promise<unknown>} */ work) => work().catch((error) => say(error.message, true));
  const flip = () => { localStorage.setItem("diff", side ? "unified" : "side"); setSide(!side); };
  const off = question.stale || !connected.value;
  const editable = question.content != null && (details.editable || details.type === "exec");
  useKeys(active && question.here && !question.stale ? {
    y: () => attempt(once), a: () => { if (can("session")) attempt(() => answer({ choice: "session" })); }, n: () => setDialog("deny"), A: () => setDialog("always"),
    ...(editable ? { e: () => setEditing(true) } : {}), d: flip,
  } : {});
  // Before the paint, as the next key is meant for it.
  useLayoutEffect(() => { if (editing) box.current?.querySelector("textarea")?.focus(); }, [editing]);
  return html`<article class=${active ? "question active" : "question"} aria-label=${`Question: ${topic(question)}`} ref=${box}>
    <header><span class="pulse ask"></span><b class="grow cut">${topic(question)}</b>${question.again ? html`<span class="chip" title="asked before the gateway was restarted">asked again</span>` : null}
      ${titled ? html`<a class="cut" href=${`#/sessions/${encodeURIComponent(question.session)}`}>${question.session_title || question.session}</a>` : null}<span class="dim">${ago(question.asked)}</span></header>
    <div class="inside">
      ${details.type === "edit" ? html`<div class="row wrap"><span class="mono grow cut">${details.paths.map((/** @type {string} */ one) => visible(within(one, question.project))).join(", ")}</span>${details.new_file ? html`<span class="chip">new file</span>` : null}<span class="mono"><span class="good">+${details.stat?.added ?? details.stat?.model_added ?? 0}</span> <span class="bad">−${details.stat?.removed ?? details.stat?.model_removed ?? 0}</span></span>
        <${Choice} small label="Diff" value=${side ? "side" : "unified"} onChange=${flip} options=${[["unified", "Unified"], ["side", "Side by side"]]} /></div>${editing ? null : html`<${Diff} diff=${details.diff} side=${side} />`}` : null}
      ${details.type === "exec" ? html`${editing ? null : html`<pre class="note">${visible(details.command)}</pre>`}<p class="dim">programs ${details.roots.map((/** @type {string} */ one) => html`<code>${visible(one)}</code> `)}${details.directory ? html`in <code>${visible(details.directory)}</code>` : null}</p>` : null}
      ${details.type === "mcp" ? html`<p>${visible(details.server)} · <b>${visible(details.tool)}</b> ${details.hints.map((/** @type {string} */ one) => html`<span class="chip">${visible(one)}</span> `)}</p><pre class="note">${visible(details.arguments)}</pre>${details.description ? html`<p class="dim"><${Said} text=${details.description} /></p>` : null}` : null}
      ${details.type === "info" ? html`<${Said} text=${details.prompt} />${details.urls.map((/** @type {string} */ one) => html`<code>${visible(one)}</code> `)}` : null}
      ${editing ? html`<label class="field">${details.type === "exec" ? "Command" : "New text"}<textarea class="mono" rows=${Math.min(24, text.split("\n").length + 1)} spellcheck="false" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) attempt(once); }}></textarea></label>` : null}
      <p class="dim">why asked: ${visible(question.reason)}</p>
      ${question.here ? html`<div class="answers"><${Act} kind="main" disabled=${question.stale} run=${once}>${editing && text !== question.content ? "Approve with changes" : "Approve"} <kbd>${editing ? "Ctrl ⏎" : "y"}</kbd></${Act}>
        ${can("session") ? html`<${Act} disabled=${question.stale} run=${() => answer({ choice: "session" })}>For this session <kbd>a</kbd></${Act}>` : null}
        ${can("always") || can("everywhere") || can("server") ? html`<button disabled=${off} onClick=${() => setDialog("always")}>Always…</button>` : null}
        ${editable ? html`<button disabled=${off} aria-pressed=${editing} onClick=${() => setEditing(!editing)}>Edit first <kbd>e</kbd></button>` : null}
        <button class="danger" disabled=${off} onClick=${() => setDialog("deny")}>Deny… <kbd>n</kbd></button></div>`
        : html`<p class="note">${question.held_by?.text ?? "answer it where the session runs"}</p>`}</div>
    ${dialog === "deny" ? html`<${Deny} onClose=${() => setDialog("")} onDeny=${(/** @type {string} */ feedback) => answer({ choice: "cancel", ...(feedback ? { feedback } : {}) })} />` : null}
    ${dialog === "always" ? html`<${Dialog} title="Approve always" onClose=${() => setDialog("")} footer=${html`${can("server") ? html`<${Act} run=${() => answer({ choice: "server" })}>Every tool of this server</${Act}>` : null}
      ${can("everywhere") ? html`<${Act} run=${() => answer({ choice: "everywhere" })}>In every project</${Act}>` : null}${can("always") ? html`<${Act} kind="main" run=${() => answer({ choice: "always" })}>In this project</${Act}>` : null}`}>
      <p>From now on these run without a question:</p><ul>${question.remembers.map((/** @type {string} */ one) => html`<li><code>${visible(one)}</code></li>`)}</ul></${Dialog}>` : null}</article>`;
}

/** @param {{onClose: () => void, onDeny: (feedback: string) => Promise<void>}} props */
function Deny({ onClose, onDeny }) {
  const [words, setWords] = useState("");
  const send = () => onDeny(words.trim());
  return html`<${Dialog} title="Deny" onClose=${onClose} footer=${html`<button onClick=${onClose}>Back</button><${Act} kind="main" run=${send}>Deny <kbd>Ctrl ⏎</kbd></${Act}>`}>
    <label class="field">Words for the model (may be empty)<textarea rows="3" autofocus placeholder="What it should do instead" value=${words} onInput=${(/** @type {any} */ event) => setWords(event.target.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send().catch((error) => say(error.message, true)); }}></textarea></label></${Dialog}>`;
}
