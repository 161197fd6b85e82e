// Differences of two texts, by line and by word (Myers, with a limit on the work).

/** @typedef {{kind: "same" | "add" | "del" | "hunk", old: number, new: number, text: string, marks?: [number, number][]}} Line */
const LIMIT = 4000;

/** The edit script of two lists: pairs of kept indices. @param {string[]} a @param {string[]} b @returns {[number, number][]} */
export function kept(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  /** @type {[number, number][]} */
  const pairs = [];
  for (let n = 0; n < start; n++) pairs.push([n, n]);
  const x0 = a.length - end - start, y0 = b.length - end - start;
  if (x0 && y0 && x0 + y0 <= LIMIT) pairs.push(...middle(a.slice(start, start + x0), b.slice(start, start + y0)).map(([x, y]) => /** @type {[number, number]} */ ([x + start, y + start])));
  for (let n = end; n > 0; n--) pairs.push([a.length - n, b.length - n]);
  return pairs;
}

/** @param {string[]} a @param {string[]} b @returns {[number, number][]} */
function middle(a, b) {
  const most = Math.min(a.length + b.length, 1200), size = 2 * most + 3;
  let front = new Int32Array(size);
  const trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(front.slice());
    for (let k = -d; k <= d; k += 2) {
      const at = k + most + 1;
      let x = k === -d || (k !== d && front[at - 1] < front[at + 1]) ? front[at + 1] : front[at - 1] + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++; }
      front[at] = x;
      if (x >= a.length && y >= b.length) return walk(trace, a.length, b.length, most);
    }
  }
  return [];
}

/** @param {Int32Array[]} trace @param {number} x @param {number} y @param {number} most @returns {[number, number][]} */
function walk(trace, x, y, most) {
  /** @type {[number, number][]} */
  const pairs = [];
  for (let d = trace.length - 1; d >= 0; d--) {
    const front = trace[d], k = x - y, at = k + most + 1;
    const down = k === -d || (k !== d && front[at - 1] < front[at + 1]);
    const oldX = d === 0 ? 0 : down ? front[at + 1] : front[at - 1];
    const oldY = d === 0 ? 0 : oldX - (down ? k + 1 : k - 1);
    while (x > oldX && y > oldY && x > 0 && y > 0) pairs.push([--x, --y]);
    x = oldX;
    y = oldY;
  }
  return pairs.reverse();
}

/** @param {string} before @param {string} after @returns {Line[]} */
export function lines(before, after) {
  const a = before === "" ? [] : before.replace(/\n$/, "").split("\n"), b = after === "" ? [] : after.replace(/\n$/, "").split("\n");
  /** @type {Line[]} */
  const out = [];
  let x = 0, y = 0;
  /** @param {number} toX @param {number} toY */
  const changed = (toX, toY) => {
    const gone = a.slice(x, toX), come = b.slice(y, toY), marks = marked(gone, come);
    gone.forEach((text, n) => out.push({ kind: "del", old: x + n + 1, new: 0, text, marks: marks[0].get(n) }));
    come.forEach((text, n) => out.push({ kind: "add", old: 0, new: y + n + 1, text, marks: marks[1].get(n) }));
  };
  for (const [toX, toY] of kept(a, b)) {
    changed(toX, toY);
    out.push({ kind: "same", old: toX + 1, new: toY + 1, text: a[toX] });
    x = toX + 1;
    y = toY + 1;
  }
  changed(a.length, b.length);
  return out;
}

/** Changed words of lines that are versions of each other, by index. @param {string[]} gone @param {string[]} come @returns {[Map<number, [number, number][]>, Map<number, [number, number][]>]} */
export function marked(gone, come) {
  const left = new Map(), right = new Map();
  if (gone.length * come.length > 2500) return [left, right];
  let from = 0;
  gone.forEach((text, n) => {
    let best = null, where = 0;
    for (let at = from; at < come.length; at++) {
      const found = words(text, come[at]);
      if (found && found.same > (best?.same ?? 0)) [best, where] = [found, at];
    }
    if (!best) return;
    left.set(n, best.left);
    right.set(where, best.right);
    from = where + 1;
  });
  return [left, right];
}

/** Ranges of changed words in both lines. @param {string} a @param {string} b @returns {{left: [number, number][], right: [number, number][], same: number} | undefined} */
function words(a, b) {
  const x = a.match(/\w+|\s+|./gu) ?? [], y = b.match(/\w+|\s+|./gu) ?? [];
  if (x.length + y.length > 600) return undefined;
  const pairs = kept(x, y);
  const same = pairs.reduce((sum, [n]) => sum + (x[n].trim() ? x[n].length : 0), 0);
  if (same * 3 < Math.min(a.trim().length, b.trim().length)) return undefined;
  return { left: ranges(x, new Set(pairs.map((pair) => pair[0]))), right: ranges(y, new Set(pairs.map((pair) => pair[1]))), same };
}

/** @param {string[]} parts @param {Set<number>} keeps @returns {[number, number][]} */
function ranges(parts, keeps) {
  /** @type {[number, number][]} */
  const out = [];
  let at = 0;
  parts.forEach((part, n) => {
    if (!keeps.has(n)) {
      const last = out[out.length - 1];
      if (last && last[1] === at) last[1] = at + part.length;
      else out.push([at, at + part.length]);
    }
    at += part.length;
  });
  return out;
}

/** Lines of a unified diff, as a server sent it. @param {string} text @returns {Line[]} */
export function unified(text) {
  /** @type {Line[]} */
  const out = [];
  let x = 0, y = 0;
  for (const line of text.split("\n")) {
    const place = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (place) { if (out.length) out.push({ kind: "hunk", old: 0, new: 0, text: "" }); x = +place[1]; y = +place[2]; continue; }
    if (!x && !y) continue;
    if (line[0] === "+") out.push({ kind: "add", old: 0, new: y++, text: line.slice(1) });
    else if (line[0] === "-") out.push({ kind: "del", old: x++, new: 0, text: line.slice(1) });
    else if (line[0] === " ") out.push({ kind: "same", old: x++, new: y++, text: line.slice(1) });
  }
  return out;
}
