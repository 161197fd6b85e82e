// The frame around all pages: menu, keys, palette, help, theme, log-in, notices.
import { html, render, signal, useEffect, useRef, useState } from "./html.js";
import { api, attempt, connected, enter, logIn, session, toasts } from "./api.js";
import { changed, problem, questions, useFeed } from "./feed.js";
import { Icon, Mark } from "./icons.js";
import { useKeys } from "./keyboard.js";
import { Dialog, Empty, Failed } from "./parts.js";
import { address, go, route } from "./route.js";
import { topic } from "./text.js";

/** name, title, key, module */
const PAGES = [
  ["live", "Live", "l", () => import("./pages/live.js")], ["sessions", "Sessions", "s", () => import("./pages/sessions.js")],
  ["playground", "Playground", "p", () => import("./pages/playground.js")], ["models", "Models", "m", () => import("./pages/models.js")],
  ["keys", "Keys", "k", () => import("./pages/keys.js")], ["usage", "Usage", "u", () => import("./pages/usage.js")],
  ["conformance", "Conformance", "c", () => import("./pages/conformance.js")], ["settings", "Settings", ",", () => import("./pages/settings.js")],
];
const KEYS = [["g l … g ,", "go to Live, Sessions, Playground, Models, Keys, Usage, Conformance, Settings"], ["/", "filter"], ["j k ↓ ↑", "next, previous"],
  ["g q", "all open questions"], ["Enter", "open"], ["Esc", "back"], [".", "pause the live list"], ["y a n", "answer a question: once, for the session, no"], ["e", "edit what a question proposes"],
  ["d", "diff unified or side by side"], ["1 … 5", "one stage of a request; 0 all"], ["v", "text, tree, raw, frames"], ["c", "compare two requests; on Sessions and Keys: a new one"], ["i", "write a message"], ["Ctrl K", "every command"], ["?", "this help"]];
const overlay = signal("");
const theme = signal(localStorage.getItem("theme") ?? "system");

/** @param {string} value */
function setTheme(value) {
  theme.value = value;
  localStorage.setItem("theme", value);
  document.documentElement.dataset.theme = value;
}
const nextTheme = () => setTheme({ system: "light", light: "dark", dark: "system" }[theme.value] ?? "system");

function Nav() {
  const open = questions.value.filter((one) => one.here !== false).length;
  return html`<nav class="nav" aria-label="Pages"><a class="brand" href="#/live"><${Mark} />toolwire</a>
    ${PAGES.map(([name, title, key]) => html`<a key=${name} class="item" href=${address(/** @type {string} */ (name))} aria-current=${route.value.page === name ? "page" : undefined} title=${`${title} (g ${key})`}>
      <${Icon} name=${name} /><span>${title}</span>${name === "sessions" && open ? html`<span class="count" aria-label=${`${open} open questions`}>${open}</span>` : null}</a>`)}
    <button class="item more" onClick=${() => { overlay.value = "palette"; }}><${Icon} name="more" /><span>More</span></button>
    <div class="foot"><button class="plain" onClick=${() => { overlay.value = "palette"; }} title="Every command (Ctrl K)" aria-label="Commands"><${Icon} name="search" /></button><button class="plain" onClick=${nextTheme} aria-label=${`Theme: ${theme.value}`} title="Theme"><${Icon} name="theme" />${theme.value}</button>
      <button class="plain" onClick=${() => { overlay.value = "help"; }} aria-label="Help and keys" title="Keys (?)"><${Icon} name="help" /></button></div></nav>`;
}

function Strips() {
  const waiting = questions.value.filter((one) => one.here !== false);
  const first = waiting[0];
  const elsewhere = first && route.value.page !== "sessions";
  return html`<div class="strip">${connected.value ? null : html`<div><span class="pulse"></span>Reconnecting…</div>`}
    ${problem.value ? html`<div class="bad" role="alert">${problem.value}</div>` : null}
    ${elsewhere ? html`<div class="ask"><span class="pulse ask"></span><span class="grow cut">${waiting.length === 1 ? "1 question waits" : `${waiting.length} questions wait`} for you: ${topic(first)}</span><a href="#/sessions/questions">Answer</a></div>` : null}
    <p class="hidden" role="status" aria-live="polite">${first ? `Question: ${topic(first)}` : ""}</p></div>`;
}

function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [sessions, setSessions] = useState(/** @type {any[]} */ ([]));
  useEffect(() => { api("sessions?limit=20").then((found) => setSessions(found.sessions), () => undefined); }, []);
  /** @type {[string, string, () => void][]} */
  const all = [
    ...PAGES.map(([name, title, key]) => /** @type {[string, string, () => void]} */ ([`Go to ${title}`, `g ${key}`, () => go(/** @type {string} */ (name))])),
    ["New session", "", () => go("sessions", "new")], ["All open questions", "g q", () => go("sessions", "questions")], ["Create a key", "", () => go("keys", "new")],
    ["Theme: system", "", () => setTheme("system")], ["Theme: light", "", () => setTheme("light")], ["Theme: dark", "", () => setTheme("dark")],
    ["Reload the settings", "", () => { attempt(() => api("reload", {})); }], ["Keys and help", "?", () => { overlay.value = "help"; }],
    ["Log out", "", () => { attempt(async () => { await api("logout", {}); session.value = { ...session.value, in: false, csrf: "" }; }); }],
    ...sessions.map((one) => /** @type {[string, string, () => void]} */ ([`Session: ${one.title || one.id}`, "", () => go("sessions", one.id)])),
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(([title]) => words.every((word) => title.toLowerCase().includes(word)));
  if (/^req_\w+$/.test(text.trim())) found.unshift([`Open request ${text.trim()}`, "", () => go("live", text.trim())]);
  const chosen = Math.min(at, found.length - 1);
  const run = (/** @type {number} */ n) => { overlay.value = ""; found[n]?.[2](); };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setAt(Math.max(0, Math.min(found.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)))); }
    if (event.key === "Enter") { event.preventDefault(); run(chosen); }
  };
  return html`<${Dialog} title="Commands" kind="palette" onClose=${() => { if (overlay.value === "palette") overlay.value = ""; }}>
    <input aria-label="Command" role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant=${`command-${chosen}`} placeholder="Go to a page, a session, a request…" autofocus value=${text} onInput=${(/** @type {any} */ event) => { setText(event.target.value); setAt(0); }} onKeyDown=${keys} />
    <ul id="commands" role="listbox" aria-label="Commands">${found.slice(0, 40).map(([title, key], n) => html`<li key=${title + n} id=${`command-${n}`} role="option" aria-selected=${n === chosen} onClick=${() => run(n)}><span class="grow cut">${title}</span>${key ? html`<kbd>${key}</kbd>` : null}</li>`)}
      ${found.length ? null : html`<li class="dim">nothing matches</li>`}</ul></${Dialog}>`;
}

const Help = () => html`<${Dialog} title="Keys" onClose=${() => { overlay.value = ""; }}><dl class="keys">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
  <p class="dim">toolwire ${session.value.version}</p></${Dialog}>`;

function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try { await enter({ token }); } catch (problem) { setError(/** @type {Error} */ (problem).message); }
  };
  return html`<main class="login"><form class="panel" onSubmit=${send}><div class="row"><span class="brand"><${Mark} />toolwire</span></div>
    <h1>Log in</h1><p class="dim">Open the link that <code>toolwire serve</code> printed (it works once, for a minute), or paste the token that it printed.</p>
    ${error || toasts.value.some((one) => one.bad) ? html`<${Failed} text=${error || toasts.value[toasts.value.length - 1].text} />` : null}
    <label class="field">Token<input type="password" name="token" autocomplete="current-password" value=${token} autofocus onInput=${(/** @type {any} */ event) => setToken(event.target.value)} /></label>
    <button class="main" type="submit" disabled=${!token}>Log in</button></form></main>`;
}

function Pages() {
  const { page } = route.value;
  const entry = PAGES.find(([name]) => name === page);
  const [loaded, setLoaded] = useState(/** @type {Record<string, any>} */ ({}));
  const [error, setError] = useState("");
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    document.title = entry ? `${entry[1]} · toolwire` : "toolwire";
    if (!entry || loaded[page]) return;
    /** @type {() => Promise<any>} */ (entry[3])().then((module) => setLoaded((old) => ({ ...old, [page]: module.default })), () => setError("this page could not be loaded; reload when the gateway is back"));
  }, [page]);
  const Page = loaded[page];
  if (!entry) return html`<main class="page"><${Empty} icon="help" title="No such page"><a href="#/live">Live requests</a></${Empty}></main>`;
  return html`<main class="page" tabindex="-1" ref=${heading} aria-label=${entry[1]} key=${page}>${Page ? html`<${Page} />` : error ? html`<div class="body"><${Failed} text=${error} /></div>` : null}</main>`;
}

/** @param {(box: Element) => number} far */
const scroll = (far) => () => { const box = document.querySelector(".page > .body"); box?.scrollBy({ top: far(box) }); };
const down = scroll(() => 64), up = scroll(() => -64);
/** Keys of pages without a list. */
const SCROLL = { j: down, ArrowDown: down, k: up, ArrowUp: up, PageDown: scroll((box) => box.clientHeight - 64), PageUp: scroll((box) => 64 - box.clientHeight), Home: scroll(() => -1e7), End: scroll(() => 1e7) };

function App() {
  useFeed("live?topics=questions,sessions");
  useKeys({
    ...Object.fromEntries(PAGES.map(([name, , key]) => [`g ${key}`, () => go(/** @type {string} */ (name))])),
    "g q": () => go("sessions", "questions"), ...SCROLL, palette: () => { overlay.value = overlay.value === "palette" ? "" : "palette"; }, "?": () => { overlay.value = "help"; },
    "/": () => /** @type {HTMLElement | null} */ (document.querySelector(".filter input"))?.focus(), Escape: () => { if (route.value.id) go(route.value.page, "", route.value.query); },
  });
  return html`<div class="frame"><button class="skip" onClick=${() => /** @type {HTMLElement | null} */ (document.querySelector("main.page"))?.focus()}>Skip the menu</button><${Nav} /><${Strips} /><${Pages} /></div>
    ${overlay.value === "palette" ? html`<${Palette} />` : overlay.value === "help" ? html`<${Help} />` : null}`;
}

const Toasts = () => html`<div class="toast">${toasts.value.map((one) => html`<div key=${one.id} role=${one.bad ? "alert" : undefined} class=${one.bad ? "bad" : ""}>${one.text}</div>`)}</div>`;

function Root() {
  if (!session.value.checked) return null;
  return session.value.in ? html`<${App} /><${Toasts} />` : html`<${Login} />`;
}

setTheme(theme.value);
void changed;
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
logIn().catch(() => { session.value = { ...session.value, checked: true }; }).then(() => render(html`<${Root} />`, app));
