// A conversation with one model through the gateway's own chat route.
import { BASE, session } from "./api.js";

/** @typedef {{id: string, name: string, arguments: string, result: string | null}} Call */
/** @typedef {{role: "user" | "assistant", text: string, thinking: string, calls: Call[], request: string, first: number, seconds: number, input: number, output: number, error: string, running: boolean}} Entry */
/** @typedef {{system: string, temperature: string, limit: string, effort: string, style: string, schema: string, tools: {name: string, description?: string, schema: unknown}[]}} Options */

/** @param {"user" | "assistant"} role @param {string} text @returns {Entry} */
export const entry = (role, text) => ({ role, text, thinking: "", calls: [], request: "", first: 0, seconds: 0, input: 0, output: 0, error: "", running: false });

/** The body of a chat request. @param {string} model @param {Entry[]} entries @param {Options} options */
export function body(model, entries, options) {
  /** @type {any[]} */
  const messages = options.system ? [{ role: "system", content: options.system }] : [];
  for (const one of entries) {
    if (one.role === "user") messages.push({ role: "user", content: one.text });
    else if (one.text || one.calls.length) {
      messages.push({ role: "assistant", content: one.text || null, ...(one.calls.length ? { tool_calls: one.calls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } })) } : {}) });
      for (const call of one.calls) messages.push({ role: "tool", tool_call_id: call.id, content: call.result ?? "" });
    }
  }
  /** @type {Record<string, any>} */
  const out = { model, messages, stream: true, stream_options: { include_usage: true } };
  if (options.tools.length) out.tools = options.tools.map(({ name, description, schema }) => ({ type: "function", function: { name, description, parameters: schema } }));
  if (options.temperature !== "") out.temperature = Number(options.temperature);
  if (options.limit !== "") out.max_completion_tokens = Number(options.limit);
  if (options.effort) out.reasoning_effort = options.effort;
  if (options.schema.trim()) out.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(options.schema), strict: true } };
  return out;
}

/** Asks, and reports each change of the answer. @param {any} request @param {Entry} answer @param {string} style @param {AbortSignal} signal @param {() => void} changed */
export async function ask(request, answer, style, signal, changed) {
  const began = performance.now();
  answer.running = true;
  try {
    const reply = await fetch(new URL("v1/chat/completions", BASE), {
      method: "POST", signal, credentials: "same-origin", body: JSON.stringify(request),
      headers: { "content-type": "application/json", "x-toolwire-csrf": session.value.csrf, "toolwire-record": "full", ...(style && style !== "auto" ? { "toolwire-style": style } : {}) },
    });
    answer.request = reply.headers.get("x-request-id") ?? "";
    if (!reply.ok || !reply.body) throw new Error((await reply.json().catch(() => null))?.error?.message ?? `the gateway answered ${reply.status}`);
    for await (const data of events(reply.body)) {
      if (data === "[DONE]") break;
      answer.first ||= (performance.now() - began) / 1000;
      read(JSON.parse(data), answer);
      changed();
    }
  } catch (error) {
    answer.error = signal.aborted ? "stopped" : /** @type {Error} */ (error).message;
  }
  answer.seconds = (performance.now() - began) / 1000;
  answer.running = false;
  changed();
}

/** @param {any} chunk @param {Entry} answer */
function read(chunk, answer) {
  if (chunk.error) throw new Error(chunk.error.message);
  if (chunk.usage) Object.assign(answer, { input: chunk.usage.prompt_tokens, output: chunk.usage.completion_tokens });
  const delta = chunk.choices?.[0]?.delta ?? {};
  answer.text += delta.content ?? "";
  answer.thinking += delta.reasoning_content ?? "";
  for (const piece of delta.tool_calls ?? []) {
    const call = (answer.calls[piece.index] ??= { id: "", name: "", arguments: "", result: null });
    if (piece.id) call.id = piece.id;
    if (piece.function?.name) call.name = piece.function.name;
    call.arguments += piece.function?.arguments ?? "";
  }
}

/** The data of server-sent events. @param {ReadableStream<Uint8Array>} stream */
async function* events(stream) {
  const reader = stream.getReader(), decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    const blocks = text.split(/\r?\n\r?\n/);
    text = /** @type {string} */ (blocks.pop());
    for (const block of blocks) {
      const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (data) yield data;
    }
    if (done) return;
  }
}

/** The conversation of a recorded request, to go on from. @param {any} request the canonical one */
export function opened(request) {
  /** @type {Entry[]} */
  const entries = [];
  /** @type {Map<string, Call>} */
  const calls = new Map();
  const words = (/** @type {any[]} */ parts) => parts.filter((part) => part.type === "text").map((part) => part.text).join("\n");
  for (const message of request.messages ?? []) {
    for (const part of message.parts) {
      if (part.type !== "tool_result") continue;
      const call = calls.get(part.call_id ?? part.id);
      if (call) call.result = typeof part.content === "string" ? part.content : words(part.content ?? part.parts ?? []);
    }
    const text = words(message.parts);
    if (message.role === "assistant") {
      const made = entry("assistant", text);
      made.calls = message.parts.filter((/** @type {any} */ part) => part.type === "tool_call").map((/** @type {any} */ part) => ({ id: part.id, name: part.name, arguments: part.arguments, result: null }));
      made.calls.forEach((call) => calls.set(call.id, call));
      entries.push(made);
    } else if (text) entries.push(entry("user", text));
  }
  const system = typeof request.system === "string" ? request.system : words(request.system ?? []);
  const tools = (request.tools ?? []).map((/** @type {any} */ one) => ({ name: one.name, description: one.description, schema: one.schema ?? one.parameters ?? one.input_schema }));
  return { entries, system, tools };
}
