// Settings: every value with its origin, and how tools are offered to models.
import { html, useEffect, useState } from "../html.js";
import { api, say, useData } from "../api.js";
import { problem } from "../feed.js";
import { Icon } from "../icons.js";
import { Act, Choice, Failed, Top } from "../parts.js";
import { route, useTyped } from "../route.js";
import { visible } from "../text.js";

/** @type {Record<string, string>} */
const NEEDS = { restart: "after a restart", new_session: "in new sessions", none: "" };

export default function Settings() {
  const { query } = route.value;
  const { data, error, set } = useData("settings");
  const [typed, setTyped] = useTyped("q");
  const word = (query.q ?? "").toLowerCase();
  const rows = (data?.settings ?? []).filter((/** @type {any} */ one) => !word || one.key.toLowerCase().includes(word) || one.description.toLowerCase().includes(word) || (word === "changed" && one.origin !== "default"));
  const groups = Map.groupBy ? [...Map.groupBy(rows, (/** @type {any} */ one) => one.key.includes(".") ? one.key.split(".")[0] : "general")] : [["all", rows]];
  const layer = (/** @type {string} */ origin) => data.files.find((/** @type {any} */ file) => file.path === origin)?.layer ?? (/^TOOLWIRE_/.test(origin) ? "variable" : origin);
  const reload = async () => { const made = await api("reload", {}); problem.value = made.problem; say(made.problem || (made.needs_restart.length ? `reloaded; ${made.needs_restart.join(", ")} need a restart` : "reloaded"), Boolean(made.problem)); };
  const changed = (/** @type {any} */ made) => { set({ ...data, settings: data.settings.map((/** @type {any} */ one) => (one.key === made.setting.key ? made.setting : one)) }); const by = layer(made.setting.origin); if (made.problem) say(made.problem, true); else if (by === "variable" || by === "flag") say(`saved in the file, but ${by === "flag" ? "a flag of the command line" : made.setting.origin} decides`, true); else say(NEEDS[made.needs] ? `saved; applies ${NEEDS[made.needs]}` : "saved"); };
  return html`<${Top} title="Settings"><div class="filter" role="search"><${Icon} name="search" /><input type="search" aria-label="Filter settings" placeholder="A name, a word, or: changed" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /><kbd>/</kbd></div><${Act} run=${reload}>Reload</${Act}></${Top}>
    <div class="body">${error ? html`<${Failed} text=${error} />` : null}${data?.problem ? html`<${Failed} text=${data.problem} />` : null}
      ${word ? null : html`<${Style} />`}
      ${groups.map(([name, list]) => html`<section class="panel" key=${name} aria-label=${name}><header><h2 class="first-up">${name}</h2></header>${/** @type {any[]} */ (list).map((one) => html`<${Setting} key=${one.key} one=${one} layer=${layer(one.origin)} onChange=${changed} />`)}</section>`)}
      ${data ? html`<section class="panel" aria-label="Files"><header><h2>Files</h2></header><div class="scroll"><table><tbody>${data.files.map((/** @type {any} */ one) => html`<tr key=${one.path}><td>${one.layer}</td><td class="mono wide">${visible(one.path)}</td><td class="dim">${one.state}</td></tr>`)}</tbody></table></div></section>` : null}</div>`;
}

/** @param {{one: any, layer: string, onChange: (made: any) => void}} props */
function Setting({ one, layer, onChange }) {
  // Words are written without the quotes of the file.
  const plain = one.type === "string", shown = (plain ? one.value : one.text) ?? "";
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const save = async (/** @type {any} */ body) => onChange(await api("settings", { key: one.key, ...body }));
  const soon = (/** @type {any} */ body) => save(body).catch((error) => { say(error.message, true); setText(shown); });
  const control = !one.editable ? html`<code>${visible(one.secret ? "••••" : String(one.text ?? ""))}</code>`
    : one.type === "boolean" ? html`<input type="checkbox" aria-label=${one.key} checked=${one.value === true} onChange=${(/** @type {any} */ event) => soon({ value: event.target.checked })} />`
      : one.choices ? html`<select aria-label=${one.key} value=${one.value ?? ""} onChange=${(/** @type {any} */ event) => soon({ value: event.target.value })}>${one.value == null ? html`<option value="">not set</option>` : null}${one.choices.map((/** @type {string} */ name) => html`<option value=${name}>${name}</option>`)}</select>`
        : html`<input class="mono" aria-label=${one.key} value=${text} spellcheck="false" placeholder="not set" onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${(/** @type {any} */ event) => { if (event.key === "Enter") event.target.blur(); }} onBlur=${() => { if (text !== shown) soon(plain ? { value: text } : { text }); }} />`;
  return html`<div class="setting"><div><div class="mono">${one.key}</div><div class="why">${visible(one.description)}${NEEDS[one.needs] ? html` · <span class="keep">applies ${NEEDS[one.needs]}</span>` : null}</div></div><div>${control}</div>
    <div class="row"><span class=${one.origin === "default" ? "dim" : "accent"} title=${`from ${one.origin}`}>${layer}</span>${layer === "variable" ? html`<span class="mono dim cut">${one.origin}</span>` : null}${one.editable && layer === "user" ? html`<${Act} kind="small" run=${() => save({ unset: true })} label=${`Unset ${one.key}`}>Unset</${Act}>` : null}</div></div>`;
}

/** How tools are offered: the choice, its reason and warning in words, what the model is shown. */
function Style() {
  const [model, setModel] = useState("");
  const { data, error, set } = useData(`settings/style${model ? `?model=${encodeURIComponent(model)}` : ""}`);
  const models = useData("models");
  const names = [...new Set([...(data?.models ?? []).map((/** @type {any} */ one) => one.model), ...(models.data?.names ?? []).map((/** @type {any} */ one) => one.model)])];
  const change = (/** @type {string} */ style) => { api("settings/style", { style, model: model || null }).then(set, (problem) => say(problem.message, true)); };
  const current = model ? data?.models.find((/** @type {any} */ one) => one.model === model)?.setting ?? data?.setting : data?.setting;
  const option = data?.options.find((/** @type {any} */ one) => one.style === current);
  if (error) return html`<${Failed} text=${error} />`;
  if (!data) return null;
  const others = data.models.filter((/** @type {any} */ one) => one.model !== data.now?.model && one.style !== data.now?.style);
  return html`<section class="panel" aria-label="Tool style"><header><h2 class="grow">How tools are offered</h2><label class="row">for <select aria-label="Model of the tool style" value=${model} onChange=${(/** @type {any} */ event) => setModel(event.target.value)}><option value="">all models</option>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select></label></header>
    <div class="inside stack"><${Choice} label="Tool style" value=${current} onChange=${change} options=${data.options.map((/** @type {any} */ one) => [one.style, one.title])} />
      ${data.now ? html`<p>Now${data.now.model ? html` for <b>${data.now.model}</b>` : null}: <b>${data.now.style}</b>: ${visible(data.now.reason)}</p>` : null}
      ${others.map((/** @type {any} */ one) => html`<p class="dim" key=${one.model}>Effective for ${one.model}: <b>${one.style}</b> (${visible(one.reason)})</p>`)}
      ${data.now?.warning || option?.warning ? html`<p class="note warn" role="note">▲ ${visible(data.now?.warning || option.warning)}</p>` : null}
      <details class="call"><summary>What the model is shown</summary><div class="inside"><pre class="said">${visible(data.preview?.[current ?? "auto"] ?? "")}</pre></div></details><p class="dim">${data.note}</p></div></section>`;
}
