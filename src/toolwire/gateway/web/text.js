// Numbers, times and sizes as people read them; characters that could mislead shown by name.

const whole = new Intl.NumberFormat("en-US");

/** @param {number | null | undefined} value */
export const count = (value) => (value == null ? "–" : whole.format(value));

/** @param {number | null | undefined} bytes */
export function size(bytes) {
  if (bytes == null) return "–";
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(bytes < 10240 ? 1 : 0)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

/** @param {number | null | undefined} dollars */
export function money(dollars) {
  if (dollars == null) return "–";
  if (dollars === 0) return "$0";
  return dollars < 0.0001 ? "<$0.0001" : `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`;
}

/** @param {number | null | undefined} seconds */
export function span(seconds) {
  if (seconds == null) return "–";
  if (seconds < 0.001) return `${(seconds * 1000).toFixed(2)} ms`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** @param {number} unix */
export const clock = (unix) => new Date(unix * 1000).toTimeString().slice(0, 8);

/** @param {number} unix */
function day(unix) {
  const at = new Date(unix * 1000), two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The time of today; of other days the day with it. @param {number} unix */
export const when = (unix) => { const on = day(unix); return on === day(Date.now() / 1000) ? clock(unix) : `${on.slice(5)} ${clock(unix).slice(0, 5)}`; };

/** @param {number | null | undefined} unix */
export const moment = (unix) => (unix ? `${day(unix)} ${clock(unix)}` : "–");

/** @param {number | null | undefined} unix */
export function ago(unix) {
  if (!unix) return "never";
  const seconds = Math.max(0, Date.now() / 1000 - unix);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u061c]/g;

/** Text with control characters and direction marks replaced by visible names. @param {string} text */
export const visible = (text) => (HIDDEN.lastIndex = 0, HIDDEN.test(text))
  ? text.replace(HIDDEN, (found) => found === "\u001b" ? "⟨ESC⟩" : `⟨U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
  : text;

/** A path as seen from its project. @param {string} path @param {string} [project] */
export const within = (path, project) => (project && path.startsWith(`${project}/`) ? path.slice(project.length + 1) : path);

/** What a question is about, in a few words. @param {any} question */
export function topic({ title, details, project }) {
  const path = details.type === "edit" ? within(String(details.paths[0] ?? ""), project) : "";
  return visible(path && !title.includes(path) ? `${title} ${path}` : title);
}

/** @param {string} text @param {string} [name] @param {string} [type] */
export function download(text, name = "download.txt", type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
