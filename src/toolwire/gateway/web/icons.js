// Every symbol of the console, as paths on a 16 × 16 grid.
import { html } from "./html.js";

const PATHS = {
  live: "M1.5 8h3l2-5 3 10 2-5h3", sessions: "M2 3.5h12v8H6.5L3.5 14v-2.5H2z", playground: "M6 2v4L2.5 13h11L10 6V2M5 2h6",
  models: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01", keys: "M9.5 6.5a3 3 0 1 0-2.6 3L8.5 8l1.5 1.5L11.5 8l2 2M4.5 6.5h.01",
  usage: "M2.5 13.5h11M4 11V8M8 11V3.5M12 11V6", conformance: "M8 1.5l5 2v4c0 3.5-2.5 6-5 7-2.5-1-5-3.5-5-7v-4zM5.5 8l2 2 3-4",
  settings: "M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 3v3M6 10v3", search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3",
  close: "M4 4l8 8M12 4l-8 8", more: "M3 8h.01M8 8h.01M13 8h.01", back: "M9.5 3.5L5 8l4.5 4.5", plus: "M8 3v10M3 8h10", copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1", download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M2.5 13.5h11",
  stop: "M4 4h8v8H4z", fork: "M4 2.5v11M4 9.5c4 0 8-1 8-5M12 4.5v-2", theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12", help: "M5.5 6a2.5 2.5 0 1 1 3.5 2.300c-.7.3-1 .7-1 1.5M8 12.5h.01",
};

/** @param {{name: string}} props */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[/** @type {keyof typeof PATHS} */ (name)]} /></svg>`;

export const Mark = () => html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#0b6e6e" /><path d="M7 11h18M16 11v12M7 21h4M21 21h4" stroke="#fff" stroke-width="3" stroke-linecap="round" fill="none" /></svg>`;
