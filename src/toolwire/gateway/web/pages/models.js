// Models and providers: what clients may name, where it goes, and whether it works.
import { html, useEffect, useState } from "../html.js";
import { api } from "../api.js";
import { useLiveData } from "../feed.js";
import { Icon } from "../icons.js";
import { Act, Empty, Failed, Said, Top } from "../parts.js";
import { address, route, useTyped } from "../route.js";
import { ago, clock, count, money, span, visible } from "../text.js";

/** @type {Record<string, [string, string, string]>} */
const STATES = { ready: ["good", "✓", "ready"], cooling: ["warn", "◷", "cooling"], no_key: ["warn", "!", "no key"], failed: ["bad", "✕", "failed"], unused: ["", "·", "not used yet"] };

export default function Models() {
  const { data, error, reload } = useLiveData("models");
  const [tests, setTests] = useState(/** @type {Record<string, any>} */ ({}));
  const test = async (/** @type {string} */ model) => {
    const made = await api("models/test", { model }).catch((problem) => ({ ok: false, error: problem.message, hint: "" }));
    setTests((old) => ({ ...old, [model]: made }));
    reload();
  };
  const [typed, setTyped] = useTyped("q");
  // A deployment that cools is ready again at a known time.
  const until = Math.min(...(data?.deployments ?? []).map((/** @type {any} */ one) => one.until ?? Infinity));
  useEffect(() => {
    if (until === Infinity) return undefined;
    const timer = setTimeout(reload, Math.max(500, until * 1000 - Date.now()));
    return () => clearTimeout(timer);
  }, [until]);
  const word = (route.value.query.q ?? "").toLowerCase();
  const shown = (data?.deployments ?? []).filter((/** @type {any} */ one) => one.name.toLowerCase().includes(word));
  const providers = [...(data?.providers ?? [])].filter((one) => `${one.name} ${one.title}`.toLowerCase().includes(word.split("/")[0])).sort((a, b) => Number(b.ready) - Number(a.ready));
  return html`<${Top} title="Models and providers"><div class="filter" role="search"><${Icon} name="search" /><input type="search" aria-label="Filter models" placeholder="A model or a provider" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /><kbd>/</kbd></div></${Top}><div class="body">${error ? html`<${Failed} text=${error} />` : null}
    ${data?.routes.length && !word ? html`<section class="panel" aria-label="Routes"><header><h2>Routes</h2></header><div class="scroll"><table><thead><tr><th>clients name</th><th>deployments</th><th>order</th><th>fallback</th></tr></thead><tbody>
      ${data.routes.map((/** @type {any} */ one) => html`<tr key=${one.name}><td class="mono">${visible(one.name)}</td><td class="wide">${one.deployments.join(", ")}</td><td>${one.balance.replace(/_/g, " ")}</td><td class="wide">${one.fallback.join(", ") || "–"}${one.long_context ? html` <span class="dim">long context: ${one.long_context}</span>` : null}</td></tr>`)}</tbody></table></div></section>` : null}
    <section class="panel" aria-label="Deployments"><header><h2 class="grow">Deployments</h2><span class="dim small">times and requests of 7 days</span></header><div class="scroll"><table class="stacked"><thead><tr><th>deployment</th><th>state</th><th class="c-key">key from</th><th>tools</th><th class="num">p50</th><th class="num">p95</th><th class="num">requests</th><th class="num">per million in / out</th><th></th></tr></thead><tbody>
      ${shown.map((/** @type {any} */ one) => html`<${Deployment} key=${one.name} one=${one} result=${tests[one.name]} test=${() => test(one.name)} />`)}</tbody></table></div>
      ${data && !shown.length ? html`<${Empty} icon="models" title="No deployment yet">Set a key such as <code>ANTHROPIC_API_KEY</code>, or add a route to the settings.</${Empty}>` : null}</section>
    <section class="panel" aria-label="Providers"><header><h2>Providers</h2></header><div class="scroll"><table class="stacked"><thead><tr><th>provider</th><th>format</th><th class="c-extra">address</th><th>key</th><th class="num">models</th></tr></thead><tbody>
      ${providers.map((one) => html`<tr key=${one.name}><td class="keep">${one.title || one.name}</td><td class="mono dim" data-label="format">${one.dialect}</td><td class="mono dim cut c-extra" data-label="address" title=${one.base_url}>${visible(one.base_url)}</td><td class="keep" data-label="key">${one.ready ? html`<span class="chip good">✓ ${one.key_from || "ready"}</span>` : html`<span class="dim">${one.key_env ? html`set <code>${one.key_env}</code>` : "not set up"}</span>`}</td><td class="num" data-label="models">${one.models || "–"}</td></tr>`)}</tbody></table></div></section></div>`;
}

/** @param {{one: any, result: any, test: () => Promise<void>}} props */
function Deployment({ one, result, test }) {
  const [kind, sign, title] = STATES[one.state] ?? ["", "?", one.state];
  return html`<tr><td><div class="keep">${visible(one.name)}</div>${one.last_error ? html`<div class="bad said">${visible(one.last_error.slice(0, 300))} <span class="dim">${ago(one.last_error_at)}</span></div>` : null}
      ${result ? html`<div class=${result.ok ? "good" : "bad"}>${result.ok ? `✓ ${span(result.seconds)}, ${result.call ? `called ${result.call.name}` : "answered with text only"}` : html`✕ <${Said} text=${[result.error, result.hint].filter(Boolean).join("; ")} />`} ${result.request ? html`<a href=${address("live", result.request)}>request</a>` : null}</div>` : null}</td>
    <td class="keep" data-label="state"><span class=${`chip ${kind}`}>${sign} ${title}${one.until ? ` until ${clock(one.until)}` : ""}</span>${one.conformance !== "unknown" ? html` <a href="#/conformance" class=${`chip ${one.conformance === "passed" ? "good" : "bad"}`}>${one.conformance === "passed" ? "✓" : "✕"} conformance</a>` : html` <a href=${address("conformance", "", { model: one.name })} class="chip" title="Probe this provider: about 12 small requests">not probed</a>`}</td>
    <td class="mono dim c-key" data-label="key">${one.key_from || "–"}</td><td data-label="tools" title=${one.style?.reason}>${one.style?.style ?? "–"}${one.style?.warning ? html` <span class="warn" title=${one.style.warning}>▲</span>` : null}</td>
    <td class="num" data-label="p50">${span(one.p50)}</td><td class="num" data-label="p95">${span(one.p95)}</td><td class="num" data-label="requests">${count(one.requests)}${one.errors ? html` <span class="bad">${one.errors} ✕</span>` : null}</td>
    <td class="num" data-label="per million in / out">${one.prices ? `${money(one.prices.input)} / ${money(one.prices.output)}` : "–"}</td><td><${Act} kind="small" run=${test} label=${`Test ${one.name}`}>Test</${Act}></td></tr>`;
}
