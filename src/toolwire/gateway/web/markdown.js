// Markdown of a model as safe markup; loaded with the first text that needs it.
import { marked } from "./vendor/marked.js";
import DOMPurify from "./vendor/purify.js";
import { policy } from "./trusted.js";

const OPTIONS = {
  RETURN_TRUSTED_TYPE: true, TRUSTED_TYPES_POLICY: policy,
  ALLOWED_TAGS: "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup table tbody td th thead tr ul".split(" "),
  ALLOWED_ATTR: ["href", "title", "start", "align"], ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
};
DOMPurify.addHook("afterSanitizeAttributes", (/** @type {Element} */ element) => {
  if (element.tagName !== "A") return;
  element.setAttribute("rel", "noopener noreferrer nofollow");
  element.setAttribute("target", "_blank");
});

// Markup that a model wrote is shown as the text it is: only Markdown's own becomes elements.
const escaped = (/** @type {{text: string}} */ token) => token.text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
// Images are not loaded: their address would tell a server that the text was read.
const image = (/** @type {{text: string, href: string}} */ token) => escaped({ text: `![${token.text}](${token.href})` });
marked.use({ renderer: { html: escaped, image } });

/** @param {HTMLElement} element @param {string} text */
export function show(element, text) {
  element.innerHTML = /** @type {any} */ (DOMPurify.sanitize(/** @type {string} */ (marked.parse(text, { async: false })), OPTIONS));
}
