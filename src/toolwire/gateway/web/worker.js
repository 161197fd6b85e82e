// Parses large JSON away from the page and answers with the pieces it shows.
import { at, children } from "./document.js";

/** @type {any} */
let root;
addEventListener("message", ({ data }) => {
  try {
    if (data.parse !== undefined) {
      root = JSON.parse(data.parse);
      postMessage({ id: data.id, value: true });
    } else if (data.whole) postMessage({ id: data.id, value: at(root, data.pointer) });
    else postMessage({ id: data.id, value: children(root, data.pointer, data.from, data.most) });
  } catch (error) {
    postMessage({ id: data.id, error: String(error) });
  }
});
