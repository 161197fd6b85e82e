// Playground: one prompt to several models, tools by hand or built in, the wire of each turn.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { api, attempt, connected, say, useData } from "../api.js";
import { ask, body, entry, opened } from "../chat.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keyboard.js";
import { Act, Choice, copy, Dialog, Empty, Failed, Reply, Said, Top } from "../parts.js";
import { go, route } from "../route.js";
import { count, money, span, visible } from "../text.js";

const STORED = "playground", TALK = "playground-talk", MOST = 1e6;
const FRESH = { models: /** @type {string[]} */ ([]), system: "", temperature: "", limit: "", effort: "", style: "auto", schema: "", chosen: /** @type {string[]} */ ([]), custom: "", auto: true };

function stored() {
  try { return { ...FRESH, ...JSON.parse(localStorage.getItem(STORED) ?? "{}") }; } catch { return FRESH; }
}

/** The conversations of the last visit. @returns {Record<number, import("../chat.js").Entry[]>} */
function talk() {
  try { return JSON.parse(localStorage.getItem(TALK) ?? "{}"); } catch { return {}; }
}

/** @param {Record<number, import("../chat.js").Entry[]>} entries */
function remember(entries) {
  const text = JSON.stringify(entries);
  if (text.length > MOST) return;
  // A browser may refuse to store anything.
  try { localStorage.setItem(TALK, text); } catch { /* the page works without */ }
}

/** Tools pasted as JSON: one or a list, in any vendor's shape. @param {string} text */
function pasted(text) {
  if (!text.trim()) return [];
  const read = JSON.parse(text);
  return (Array.isArray(read) ? read : [read]).map((one) => {
    const tool = one.function ?? one;
    if (!tool.name) throw new Error("a tool needs a name");
    return { name: tool.name, description: tool.description ?? "", schema: tool.parameters ?? tool.input_schema ?? tool.schema ?? { type: "object", properties: {} } };
  });
}

export default function Playground() {
  const { data } = useData("playground");
  const models = useData("models");
  const [options, setOptions] = useState(stored);
  const [entries, setEntries] = useState(talk);
  const [prompt, setPrompt] = useState("");
  const [tuning, setTuning] = useState(false);
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  const stops = useRef(/** @type {Map<number, AbortController>} */ (new Map()));
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const set = (/** @type {any} */ change) => setOptions((/** @type {any} */ old) => { const made = { ...old, ...change }; localStorage.setItem(STORED, JSON.stringify(made)); return made; });
  const names = models.data?.names ?? [];
  /** @type {string[]} */
  const lanes = options.models.length ? options.models : [names[0]?.model ?? names[0]?.id ?? ""];
  const draw = () => setEntries((old) => ({ ...old }));
  const busy = Object.values(entries).some((list) => list.some((one) => one.running));
  useEffect(() => { if (!busy) remember(entries); }, [entries, busy]);
  useEffect(() => () => stops.current.forEach((stop) => stop.abort()), []);
  useEffect(() => {
    const from = route.value.query.from;
    if (!from) return;
    attempt(async () => {
      const detail = await api(`requests/${encodeURIComponent(from)}`);
      const stage = await api(`requests/${encodeURIComponent(from)}/stage/2?size=16777216`);
      if (!stage.text) throw new Error(stage.why || "the request was not recorded");
      const read = opened(JSON.parse(stage.text).request);
      set({ models: [detail.request.requested_model], system: read.system, custom: read.tools.length ? JSON.stringify(read.tools, null, 2) : "", chosen: [] });
      setEntries({ 0: read.entries });
      go("playground");
    });
  }, []);

  const tools = () => [...(data?.tools ?? []).filter((/** @type {any} */ one) => options.chosen.includes(one.name)), ...pasted(options.custom)];
  const run = async (/** @type {number} */ lane, /** @type {import("../chat.js").Entry[]} */ list) => {
    const answer = entry("assistant", "");
    const stop = new AbortController();
    let request;
    try { request = body(lanes[lane], list, { ...options, tools: tools() }); } catch (error) { say(`the request cannot be made: ${/** @type {Error} */ (error).message}`, true); return; }
    list.push(answer);
    stops.current.set(lane, stop);
    setEntries((old) => ({ ...old, [lane]: list }));
    let frame = 0;
    await ask(request, answer, options.style, stop.signal, () => { frame ||= requestAnimationFrame(() => { frame = 0; draw(); }); });
    draw();
    if (!options.auto || answer.error || !answer.calls.length) return;
    const known = new Set((data?.tools ?? []).map((/** @type {any} */ one) => one.name));
    if (!answer.calls.every((call) => known.has(call.name)) || list.filter((one) => one.role === "assistant").length > 20) return;
    for (const call of answer.calls) await runTool(call);
    draw();
    if (!stop.signal.aborted) await run(lane, list);
  };
  const runTool = async (/** @type {import("../chat.js").Call} */ call) => {
    try {
      const made = await api("playground/tool", { name: call.name, arguments: JSON.parse(call.arguments || "{}") });
      call.result = made.content;
    } catch (error) {
      call.result = /** @type {Error} */ (error).message;
    }
  };
  const send = () => {
    if (!prompt.trim() || busy || !connected.value) return;
    const text = prompt;
    setPrompt("");
    lanes.forEach((_, lane) => {
      const list = [...(entries[lane] ?? [])];
      for (const one of list) for (const call of one.calls) call.result ??= "";
      list.push(entry("user", text));
      run(lane, list);
    });
  };
  const stop = () => stops.current.forEach((one) => one.abort());
  useKeys({ i: () => box.current?.focus() });
  return html`<${Top} title="Playground"><span class="grow"></span>
      <button class="only-narrow-lab" aria-label="Options" aria-pressed=${tuning} onClick=${() => setTuning(!tuning)}><${Icon} name="settings" /><span>Options</span></button>
      <button onClick=${() => setDialog({ kind: "code" })}>As code</button><button disabled=${busy} onClick=${() => setEntries({})}>Clear</button></${Top}>
    <div class=${tuning ? "lab tuning" : "lab"}><section class="work" aria-label="Conversation"><div class="lanes">
        ${lanes.map((model, lane) => html`<section class="lane" key=${lane} aria-label=${`Model ${lane + 1}`}><header><input class="grow" list="names" aria-label=${`Model ${lane + 1}`} placeholder="provider/model" value=${model} onChange=${(/** @type {any} */ event) => set({ models: lanes.map((one, n) => (n === lane ? event.target.value.trim() : one)) })} />
            ${lanes.length > 1 ? html`<button class="plain" aria-label=${`Remove model ${lane + 1}`} onClick=${() => { set({ models: lanes.filter((_, n) => n !== lane) }); setEntries(Object.fromEntries(Object.entries(entries).filter(([n]) => +n !== lane).map(([n, list]) => [+n > lane ? +n - 1 : n, list]))); }}><${Icon} name="close" /></button>` : null}
            ${lane === lanes.length - 1 && lanes.length < 4 ? html`<button class="plain" aria-label="Add a model beside" title="Add a model beside" onClick=${() => set({ models: [...lanes, names[lanes.length % Math.max(1, names.length)]?.model ?? ""] })}><${Icon} name="plus" /></button>` : null}</header>
          <div class="transcript">${(entries[lane] ?? []).map((one, n) => html`<${Turn} key=${n} one=${one} last=${n === entries[lane].length - 1} onWire=${() => setDialog({ kind: "wire", id: one.request })} onTool=${async (/** @type {any} */ call) => { await runTool(call); draw(); }} onResults=${() => run(lane, entries[lane])} onChange=${draw} />`)}
            ${entries[lane]?.length ? null : html`<${Empty} icon="playground" title="Ask a model">Write a prompt below. A tool from the options lets it read this folder; + asks another model beside it.</${Empty}>`}</div></section>`)}</div>
      <datalist id="names">${names.map((/** @type {any} */ one) => html`<option key=${one.id} value=${one.model || one.id}></option>`)}</datalist>
      <div class="say"><textarea ref=${box} rows="2" aria-label="Prompt" placeholder=${lanes.length > 1 ? `Ask ${lanes.length} models at once` : "Ask something"} value=${prompt} onInput=${(/** @type {any} */ event) => setPrompt(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); } }}></textarea>
        ${busy ? html`<button class="danger" onClick=${stop}><${Icon} name="stop" />Stop</button>` : html`<button class="main" disabled=${!prompt.trim() || !lanes[0] || !connected.value} onClick=${send}>Send</button>`}</div></section>
      <aside class="options" aria-label="Options"><${Options} data=${data} options=${options} set=${set} /></aside></div>
    ${dialog?.kind === "wire" ? html`<${Wire} id=${dialog.id} onClose=${() => setDialog(null)} />` : null}
    ${dialog?.kind === "code" ? html`<${Code} formats=${data?.formats ?? []} make=${() => body(lanes[0], (entries[0] ?? []).concat(prompt ? [entry("user", prompt)] : []), { ...options, tools: tools() })} onClose=${() => setDialog(null)} />` : null}`;
}

/** @param {{one: import("../chat.js").Entry, last: boolean, onWire: () => void, onTool: (call: any) => Promise<void>, onResults: () => void, onChange: () => void}} props */
function Turn({ one, last, onWire, onTool, onResults, onChange }) {
  if (one.role === "user") return html`<div class="turn user"><span class="who" aria-label="You">Y</span><div><${Said} text=${one.text} /></div></div>`;
  const open = last && !one.running && one.calls.some((call) => call.result === null);
  return html`<div class="turn"><span class="who" aria-label="Model">M</span><div class="stack">
    ${one.thinking ? html`<details><summary class="dim">Thinking</summary><div class="dim"><${Said} text=${one.thinking} /></div></details>` : null}
    ${one.text ? (one.running ? html`<${Said} text=${one.text} />` : html`<${Reply} text=${one.text} />`) : one.running && !one.calls.length ? html`<span class="pulse" aria-label="waiting"></span>` : null}
    ${one.calls.map((call, n) => html`<div class="call" key=${n}><div class="inside"><div class="row"><b>${visible(call.name)}</b><span class="mono dim grow cut">${call.id}</span></div><pre>${visible(call.arguments)}</pre>
      ${call.result !== null && !open ? html`<div class="tail"><${Said} text=${call.result.slice(0, 20000)} mono /></div>` : null}
      ${open ? html`<label class="field">Result<textarea class="mono" rows="3" value=${call.result ?? ""} onInput=${(/** @type {any} */ event) => { call.result = event.target.value; onChange(); }}></textarea></label><div class="row"><${Act} kind="small" run=${() => onTool(call)}>Run here</${Act}></div>` : null}</div></div>`)}
    ${last && !one.running && one.calls.length && !one.error ? html`<div><button class="small main" disabled=${one.calls.some((call) => call.result === null)} onClick=${onResults}>Send results</button></div>` : null}
    ${one.error ? (one.error === "stopped" ? html`<p class="note">stopped; the request upstream was ended too</p>` : html`<${Failed} text=${one.error} />`) : null}
    ${one.running ? null : html`<div class="facts"><span>first <b>${span(one.first)}</b></span><span>total <b>${span(one.seconds)}</b></span><span>in <b>${count(one.input)}</b></span><span>out <b>${count(one.output)}</b></span><${Cost} id=${one.request} />${one.request ? html`<button class="link" onClick=${onWire}>wire</button>` : null}</div>`}</div></div>`;
}

/** @param {{id: string}} props */
function Cost({ id }) {
  const { data } = useData(id ? `requests/${encodeURIComponent(id)}` : null);
  return data?.request?.cost != null ? html`<span>cost <b>${money(data.request.cost)}</b></span>` : null;
}

/** @param {{id: string, onClose: () => void}} props */
function Wire({ id, onClose }) {
  const [page, setPage] = useState(/** @type {any} */ (null));
  useEffect(() => { import("./request.js").then((module) => setPage({ View: module.Request })); }, []);
  return html`<${Dialog} title="Wire of this turn" kind="wide" onClose=${onClose}>${page ? html`<${page.View} id=${id} version=${0} recording="full" />` : null}</${Dialog}>`;
}

/** @param {{formats: any[], make: () => any, onClose: () => void}} props */
function Code({ formats, make, onClose }) {
  const [format, setFormat] = useState("openai-chat");
  const [language, setLanguage] = useState("curl");
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const request = useMemo(() => { try { return make(); } catch (problem) { setError(/** @type {Error} */ (problem).message); return null; } }, []);
  useEffect(() => { if (request) api("playground/code", { format, language, body: request, source: "openai-chat", model: request.model }).then((made) => { setText(made.text); setError(""); }, (problem) => setError(problem.message)); }, [format, language, request]);
  return html`<${Dialog} title="As code" kind="wide" onClose=${onClose} footer=${html`<button class="main" onClick=${() => copy(text)}><${Icon} name="copy" />Copy</button>`}>
    <div class="row wrap"><${Choice} small label="Language" value=${language} onChange=${setLanguage} options=${[["curl", "curl"], ["python", "Python"], ["typescript", "TypeScript"]]} />
      <label class="row">Format <select aria-label="Format" value=${format} onChange=${(/** @type {any} */ event) => setFormat(event.target.value)}>${formats.map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select></label></div>
    ${error ? html`<${Failed} text=${error} />` : html`<pre class="note">${text}</pre>`}</${Dialog}>`;
}

/** @param {{data: any, options: any, set: (change: any) => void}} props */
function Options({ data, options, set }) {
  const text = (/** @type {string} */ name) => ({ value: options[name], onInput: (/** @type {any} */ event) => set({ [name]: event.target.value }) });
  const bad = (/** @type {() => unknown} */ read) => { try { read(); return ""; } catch (error) { return /** @type {Error} */ (error).message; } };
  const toolError = bad(() => pasted(options.custom)), schemaError = options.schema.trim() ? bad(() => JSON.parse(options.schema)) : "";
  return html`<div class="stack gap16"><label class="field">System<textarea rows="3" ...${text("system")}></textarea></label>
    <div class="fields"><label class="field">Tool style<select value=${options.style} onChange=${(/** @type {any} */ event) => set({ style: event.target.value })}>${[["auto", "Let it decide"], ["xml", "Tags (XML)"], ["native", "Native"], ["json", "Constrained JSON"]].map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select></label>
      <label class="field">Effort<select value=${options.effort} onChange=${(/** @type {any} */ event) => set({ effort: event.target.value })}><option value="">default</option>${(data?.efforts ?? []).map((/** @type {string} */ one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <label class="field">Temperature<input type="number" step="0.1" min="0" max="2" placeholder="default" ...${text("temperature")} /></label><label class="field">Most output tokens<input type="number" min="1" placeholder="default" ...${text("limit")} /></label></div>
    <fieldset class="stack gap4"><legend class="head">Tools that only read, in ${data?.project ?? "this folder"}</legend>${(data?.tools ?? []).map((/** @type {any} */ one) => html`<label class="check" title=${one.description} key=${one.name}><input type="checkbox" checked=${options.chosen.includes(one.name)} onChange=${(/** @type {any} */ event) => set({ chosen: event.target.checked ? [...options.chosen, one.name] : options.chosen.filter((/** @type {string} */ name) => name !== one.name) })} /><span class="mono">${one.name}</span></label>`)}
      <label class="check"><input type="checkbox" checked=${options.auto} onChange=${(/** @type {any} */ event) => set({ auto: event.target.checked })} /><span>Run their calls without asking</span></label></fieldset>
    <label class="field">Tools as JSON Schema<textarea class="mono" rows="5" spellcheck="false" placeholder='{"name": "weather", "parameters": {"type": "object", …}}' ...${text("custom")}></textarea>${toolError ? html`<span class="bad">${toolError}</span>` : null}</label>
    <label class="field">Schema of the answer<textarea class="mono" rows="3" spellcheck="false" placeholder='{"type": "object", …}' ...${text("schema")}></textarea>${schemaError ? html`<span class="bad">${schemaError}</span>` : null}</label>
    <p class="dim">Options and conversations are saved in this browser only.</p></div>`;
}
