// Keys of clients: create, rotate, revoke, limits, and what each has spent.
import { html, useState } from "../html.js";
import { api } from "../api.js";
import { useLiveData } from "../feed.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keyboard.js";
import { Act, copy, Dialog, Empty, Failed, Top } from "../parts.js";
import { address, go, route } from "../route.js";
import { ago, count, moment, money, visible } from "../text.js";

export default function Keys() {
  const [all, setAll] = useState(false);
  const { data, error, reload } = useLiveData(`keys${all ? "?all=1" : ""}`);
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const [edit, setEdit] = useState(/** @type {any} */ (null));
  const [sure, setSure] = useState(/** @type {any} */ (null));
  const creating = route.value.id === "new";
  useKeys({ c: () => go("keys", "new") });
  const rotate = async (/** @type {any} */ key) => { const made = await api(`keys/${encodeURIComponent(key.id)}/rotate`, {}); setSure(null); setShown({ ...made, old: true }); reload(); };
  const revoke = async (/** @type {any} */ key) => { await api(`keys/${encodeURIComponent(key.id)}/revoke`, {}); setSure(null); reload(); };
  const typed = route.value.query.q ?? "";
  const keys = (data?.keys ?? []).filter((/** @type {any} */ one) => one.name.includes(typed));
  return html`<${Top} title="Keys"><span class="grow"></span><label class="check"><input type="checkbox" checked=${all} onChange=${(/** @type {any} */ event) => setAll(event.target.checked)} />revoked too</label><button class="main" onClick=${() => go("keys", "new")}><${Icon} name="plus" />Create a key</button></${Top}>
    <div class="body">${error ? html`<${Failed} text=${error} />` : null}
      ${typed ? html`<p class="row">Only “${visible(typed)}” <a href="#/keys">Show every key</a></p>` : null}
      ${data && !keys.length ? html`<${Empty} icon="keys" title=${typed ? "No key of that name" : "No keys yet"}>The gateway's own token works for you; give every other client a key with its own limits.</${Empty}>` : null}
      ${keys.length ? html`<section class="panel" aria-label="Keys"><div class="scroll"><table class="stacked"><thead><tr><th>name</th><th>spent of budget</th><th>may use</th><th class="num">per minute</th><th class="num">running</th><th class="num">today</th><th>last used</th><th></th></tr></thead><tbody>
        ${keys.map((/** @type {any} */ key) => html`<tr key=${key.id}><td><a href=${address("live", "", { f: `key:${key.name}` })}>${visible(key.name)}</a> ${key.state !== "active" ? html`<span class="chip bad">${key.state}</span>` : null}${key.expires ? html`<div class="dim">until ${moment(key.expires)}</div>` : null}${key.old_until && key.old_until * 1000 > Date.now() ? html`<div class="dim">old key until ${moment(key.old_until)}</div>` : null}</td>
          <td data-label="spent"><${Budgets} budgets=${key.budgets} /></td><td class="dim wide" data-label="may use">${[...key.models, ...key.routes].join(", ") || "every model"}${key.scopes.length ? ` + ${key.scopes.join(", ")}` : ""}</td>
          <td class="num" data-label="per minute">${key.rpm ? count(key.rpm) : "–"}${key.tpm ? html`<div class="dim">${count(key.tpm)} tok</div>` : null}</td><td class="num" data-label="running">${key.running}${key.concurrent ? html`<span class="dim"> / ${key.concurrent}</span>` : null}</td><td class="num" data-label="today">${count(key.requests_today)}</td><td class="dim" data-label="last used">${ago(key.last_used)}</td>
          <td><div class="row gap4">${key.state === "active" ? html`<button class="small" aria-label=${`Limits of ${key.name}`} onClick=${() => setEdit(key)}>Limits</button><button class="small" aria-label=${`Rotate ${key.name}`} onClick=${() => setSure({ key, kind: "rotate" })}>Rotate</button><button class="small danger" aria-label=${`Revoke ${key.name}`} onClick=${() => setSure({ key, kind: "revoke" })}>Revoke</button>` : null}</div></td></tr>`)}</tbody></table></div></section>` : null}</div>
    ${creating || edit ? html`<${Form} key=${edit?.id ?? "new"} old=${edit} onClose=${() => { setEdit(null); if (route.value.id === "new") go("keys"); }} onDone=${(/** @type {any} */ made) => { setEdit(null); if (creating) go("keys"); if (made.secret) setShown(made); reload(); }} />` : null}
    ${shown ? html`<${Dialog} title=${`Key ${shown.key.name}`} onClose=${() => setShown(null)} footer=${html`<button onClick=${() => copy(shown.secret, "Key copied")}><${Icon} name="copy" />Copy</button><button class="main" onClick=${() => setShown(null)}>Done</button>`}>
      <p>Shown once; store it now.${shown.old ? " The old key works for 24 more hours." : ""}</p><pre class="note accent mono" data-secret>${shown.secret}</pre></${Dialog}>` : null}
    ${sure ? html`<${Dialog} title=${sure.kind === "rotate" ? `Rotate ${sure.key.name}?` : `Revoke ${sure.key.name}?`} onClose=${() => setSure(null)} footer=${html`<button onClick=${() => setSure(null)}>Cancel</button><${Act} kind=${sure.kind === "revoke" ? "danger" : "main"} run=${() => (sure.kind === "rotate" ? rotate(sure.key) : revoke(sure.key))}>${sure.kind === "rotate" ? "Rotate" : "Revoke"}</${Act}>`}>
      <p>${sure.kind === "rotate" ? "A new key is made; the old one works for 24 hours." : "Clients with this key are refused from now on. This cannot be undone."}</p></${Dialog}>` : null}`;
}

/** @param {{budgets: any[]}} props */
function Budgets({ budgets }) {
  if (!budgets.length) return html`<span class="dim">no budget</span>`;
  return html`<div class="stack gap4">${budgets.map((one) => {
    const share = one.dollars ? Math.min(1, (one.spent + one.reserved) / one.dollars) : 0;
    return html`<div key=${one.budget}><div class="row"><div class="bar grow" role="meter" aria-label=${`${money(one.spent)} of ${one.budget}`} aria-valuenow=${Math.round(share * 100)} aria-valuemin="0" aria-valuemax="100"><i class=${share > 0.95 ? "bad" : share > 0.8 ? "warn" : ""} style=${{ width: `${share * 100}%` }}></i></div></div><div class="dim">${money(one.spent)} of ${one.budget}</div></div>`;
  })}</div>`;
}

/** @param {{old: any, onClose: () => void, onDone: (made: any) => void}} props */
function Form({ old, onClose, onDone }) {
  const [form, setForm] = useState({ name: old?.name ?? "", models: (old?.models ?? []).join(" "), budgets: (old?.budgets ?? []).map((/** @type {any} */ one) => one.budget).join(" "), rpm: old?.rpm || "", tpm: old?.tpm || "", concurrent: old?.concurrent || "", expires: "", hard: old?.hard ?? false, refuse_unpriced: old?.refuse_unpriced ?? false, scopes: (old?.scopes ?? []).join(" ") });
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setForm({ ...form, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const list = (/** @type {string} */ text) => text.split(/[\s,]+/).filter(Boolean);
  const run = async () => {
    /** @type {Record<string, unknown>} */
    const body = { name: form.name, models: list(form.models), budgets: list(form.budgets), rpm: Number(form.rpm) || 0, tpm: Number(form.tpm) || 0, concurrent: Number(form.concurrent) || 0, hard: form.hard, refuse_unpriced: form.refuse_unpriced, scopes: list(form.scopes) };
    if (form.expires) body.expires = form.expires;
    if (old) delete body.name;
    onDone(await api(old ? `keys/${encodeURIComponent(old.id)}` : "keys", body));
  };
  return html`<${Dialog} title=${old ? `Limits of ${old.name}` : "Create a key"} onClose=${onClose} footer=${html`<button onClick=${onClose}>Cancel</button><${Act} kind="main" disabled=${!form.name} run=${run}>${old ? "Save" : "Create"}</${Act}>`}>
    ${old ? null : html`<label class="field">Name<input autofocus value=${form.name} onInput=${set("name")} placeholder="ci, ada, claude-code" /></label>`}
    <label class="field">Models it may use (empty: all)<input value=${form.models} onInput=${set("models")} placeholder="anthropic/* gpt-5.6" /></label>
    <label class="field">Budgets in dollars<input value=${form.budgets} onInput=${set("budgets")} placeholder="20/month 2/day" /></label>
    <div class="fields"><label class="field">Requests a minute<input type="number" min="0" value=${form.rpm} onInput=${set("rpm")} placeholder="no limit" /></label><label class="field">Tokens a minute<input type="number" min="0" value=${form.tpm} onInput=${set("tpm")} placeholder="no limit" /></label>
      <label class="field">At the same time<input type="number" min="0" value=${form.concurrent} onInput=${set("concurrent")} placeholder="no limit" /></label><label class="field">Expires<input value=${form.expires} onInput=${set("expires")} placeholder=${old?.expires ? moment(old.expires) : "never; 30d or a date"} /></label></div>
    <label class="check"><input type="checkbox" checked=${form.hard} onChange=${set("hard")} />Never go over the budget, also not by an estimate</label><label class="check"><input type="checkbox" checked=${form.refuse_unpriced} onChange=${set("refuse_unpriced")} />Refuse models without a known price</label></${Dialog}>`;
}
