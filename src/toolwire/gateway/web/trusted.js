// The one Trusted Types policy of the console: our worker's address, and what DOMPurify returns.

const worker = new URL("./worker.js", import.meta.url).href;
const rules = {
  /** Called by DOMPurify alone: with what it parses in a document without scripts, and with its result.
   * @param {string} text */
  createHTML: (text) => text,
  /** @param {string} address */
  createScriptURL: (address) => {
    if (address !== worker) throw new TypeError("not a script of the console");
    return address;
  },
};
/** @type {any} */
const factory = /** @type {any} */ (globalThis).trustedTypes;
export const policy = factory ? factory.createPolicy("dompurify", rules) : rules;
export const newWorker = () => new Worker(policy.createScriptURL(worker), { type: "module" });
