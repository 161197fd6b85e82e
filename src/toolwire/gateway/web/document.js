// A JSON document looked at piece by piece; used by the page, and by the worker for large ones.

/** @typedef {{key: string, pointer: string, kind: "object" | "array" | "string" | "other", text: string, size: number, base64: boolean}} Node */
const BASE64 = /^(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{512,}={0,2}$/;
export const SHORT = 2000;

/** @param {string} key */
const escaped = (key) => key.replace(/~/g, "~0").replace(/\//g, "~1");

/** @param {any} value @param {string} key @param {string} pointer @returns {Node} */
function node(value, key, pointer) {
  if (Array.isArray(value)) return { key, pointer, kind: "array", text: "", size: value.length, base64: false };
  if (value !== null && typeof value === "object") return { key, pointer, kind: "object", text: hint(value), size: Object.keys(value).length, base64: false };
  if (typeof value !== "string") return { key, pointer, kind: "other", text: String(value), size: 0, base64: false };
  const base64 = value.length > 512 && BASE64.test(value.slice(0, 2048).replace(/=*$/, ""));
  return { key, pointer, kind: "string", text: base64 ? value.slice(0, 64) : value.slice(0, SHORT), size: value.length, base64 };
}

/** What an object is, in a word or two. @param {any} value */
function hint(value) {
  const words = [value.role, value.type, value.name].filter((word) => typeof word === "string" && word.length < 60);
  return words.join(" ");
}

/** The value at a JSON pointer. @param {any} root @param {string} pointer @returns {any} */
export function at(root, pointer) {
  let value = root;
  for (const step of pointer.split("/").slice(1)) {
    if (value === null || typeof value !== "object") return undefined;
    value = value[step.replace(/~1/g, "/").replace(/~0/g, "~")];
  }
  return value;
}

/** @param {any} root @param {string} pointer @param {number} from @param {number} most @returns {Node[]} */
export function children(root, pointer, from, most) {
  const value = at(root, pointer);
  if (value === null || typeof value !== "object") return [node(value, "", pointer)];
  const keys = Object.keys(value).slice(from, from + most);
  return keys.map((key) => node(value[key], key, `${pointer}/${escaped(key)}`));
}

/** Readable text, and where the values at some pointers begin and end in it.
 * @param {any} root @param {string[]} pointers @returns {{text: string, ranges: [number, number][]}} */
export function pretty(root, pointers) {
  /** @type {[number, number][]} */
  const ranges = [];
  const wanted = new Set(pointers);
  let text = "";
  /** @param {any} value @param {string} pointer @param {string} indent */
  const write = (value, pointer, indent) => {
    const start = text.length;
    if (value === null || typeof value !== "object") text += JSON.stringify(value) ?? "null";
    else {
      const list = Array.isArray(value), keys = Object.keys(value);
      text += list ? "[" : "{";
      keys.forEach((key, n) => {
        text += `${n ? "," : ""}\n${indent}  ${list ? "" : `${JSON.stringify(key)}: `}`;
        write(value[key], `${pointer}/${escaped(key)}`, `${indent}  `);
      });
      text += `${keys.length ? `\n${indent}` : ""}${list ? "]" : "}"}`;
    }
    if (wanted.has(pointer)) ranges.push([start, text.length]);
  };
  write(root, "", "");
  return { text, ranges };
}
