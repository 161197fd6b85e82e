// A session's records as what people read: messages, calls with their results, notices.

/** @typedef {{seq: number, at: number, event: any}} Record_ */
/** @typedef {{kind: "user" | "reply" | "thinking" | "call" | "notice" | "end" | "context", key: string, seq: number, at: number, text: string, call?: Call}} Item */
/** @typedef {{id: string, name: string, arguments: string, state: "wanted" | "running" | "done" | "failed" | "denied", output: string, diff: string, seconds: number, added: number, removed: number}} Call */

/** @param {any} parts */
const words = (parts) => parts.filter((/** @type {any} */ part) => part.type === "text" || part.type === "refusal").map((/** @type {any} */ part) => part.text).join("\n\n");

/** @param {any} result */
function resultText(result) {
  if (!result) return "";
  if (typeof result.content === "string") return result.content;
  const parts = result.content ?? result.parts ?? [];
  return Array.isArray(parts) ? parts.map((/** @type {any} */ part) => part.text ?? (part.type === "media" ? `[${part.kind}]` : "")).join("\n") : "";
}

export class Transcript {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    /** @type {Map<string, Item>} */
    this.calls = new Map();
    this.last = 0;
    this.restart();
  }

  /** Forgets what was streamed of the reply under way. */
  restart() {
    this.text = "";
    this.thinking = "";
    /** @type {Map<string, {name: string, arguments: string}>} */
    this.begun = new Map();
  }

  /** @param {Record_[]} records each number is read once */
  read(records) {
    for (const record of records) {
      if (record.seq <= this.last) continue;
      this.last = record.seq;
      this.event(record);
    }
  }

  /** @param {Record_} record */
  event({ seq, at, event }) {
    /** @param {Item["kind"]} kind @param {string} text */
    const add = (kind, text) => this.items.push({ kind, key: `${seq}-${this.items.length}`, seq, at, text });
    switch (event.type) {
      case "message_added": {
        const { message } = event;
        const text = words(message.parts);
        if (event.context) {
          // The acknowledgement that some models need after the context tells people nothing.
          if (message.role !== "assistant" && text) add("context", text);
        } else if (message.role === "assistant") {
          this.restart();
          for (const part of message.parts) {
            if (part.type === "thinking" && part.text) add("thinking", part.text);
            if ((part.type === "text" || part.type === "refusal") && part.text) add("reply", part.text);
            if (part.type === "tool_call") this.call(part.id, part.name, part.arguments, seq, at);
          }
        } else if (text) add("user", text);
        break;
      }
      case "tool_requested": this.call(event.call.id, event.call.name, event.call.arguments, seq, at); break;
      case "tool_started": this.change(event.call_id, { state: "running", arguments: event.arguments }); break;
      case "tool_decided": if (event.decision === "reject") this.change(event.call_id, { state: "denied", output: event.reason }); break;
      case "tool_finished": {
        this.call(event.call_id, event.name, event.arguments, seq, at);
        const denied = event.decision === "reject";
        this.change(event.call_id, { state: event.success ? "done" : denied ? "denied" : "failed", seconds: event.duration, output: event.display || resultText(event.result), diff: event.diff ?? "", added: event.stat?.added ?? event.stat?.model_added ?? 0, removed: event.stat?.removed ?? event.stat?.model_removed ?? 0 });
        break;
      }
      case "retrying": if (event.void) this.restart(); add("notice", event.message); break;
      case "noticed": if (event.kind !== "loss") add("notice", event.message); break;
      case "history_replaced": add("notice", `The conversation was shortened (${event.method}): ${event.before} → ${event.after} tokens.`); break;
      case "turn_ended": this.restart(); if (event.reason !== "done") add("end", `Turn ended: ${event.reason.replace(/_/g, " ")}${event.detail ? `: ${event.detail}` : ""}`); break;
      case "session_opened": if (event.changed) add("notice", `The ${event.changed} is now ${event[event.changed]}.`); break;
      default:
    }
  }

  /** @param {string} id @param {string} name @param {string} args @param {number} seq @param {number} at */
  call(id, name, args, seq, at) {
    const old = this.calls.get(id);
    if (old) return;
    /** @type {Item} */
    const item = { kind: "call", key: `call-${id}`, seq, at, text: "", call: { id, name, arguments: args, state: "wanted", output: "", diff: "", seconds: 0, added: 0, removed: 0 } };
    this.calls.set(id, item);
    this.items.push(item);
  }

  /** @param {string} id @param {Partial<Call>} change */
  change(id, change) {
    const item = this.calls.get(id);
    if (item?.call) item.call = { ...item.call, ...change };
  }

  /** @param {any[]} pieces */
  pieces(pieces) {
    for (const piece of pieces) {
      if (piece.kind === "text") this.text += piece.text;
      else if (piece.kind === "thinking") this.thinking += piece.text;
      else if (piece.kind === "call") this.begun.set(piece.id, { name: piece.name, arguments: "" });
      else if (piece.kind === "arguments") { const one = this.begun.get(piece.id); if (one) one.arguments += piece.text; }
      else if (piece.kind === "output") { const item = this.calls.get(piece.id); if (item?.call) item.call = { ...item.call, output: (item.call.output + piece.text).slice(-200000) }; }
      else if (piece.kind === "void") this.restart();
    }
  }

  /** @param {any} partial what was streamed so far; replaces what is shown */
  partial(partial) {
    this.restart();
    if (!partial) return;
    this.text = partial.text ?? "";
    this.thinking = partial.thinking ?? "";
    for (const one of partial.calls ?? []) this.begun.set(one.id, { name: one.name, arguments: one.arguments });
    for (const [id, text] of Object.entries(partial.outputs ?? {})) this.change(id, { output: /** @type {string} */ (text) });
  }
}
