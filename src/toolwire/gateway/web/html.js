// The view library in one import: templates, hooks and signals.
import { createElement, Fragment, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render, Fragment };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, untracked } from "./vendor/signals.js";
/** @template T @typedef {import("./vendor/signals.js").Signal<T>} Signal */
export const html = htm.bind(createElement);
