export interface Signal<T> { value: T; peek(): T; subscribe(reader: (value: T) => void): () => void; }
export function signal<T>(value: T): Signal<T>;
export function computed<T>(make: () => T): Signal<T>;
export function effect(work: () => void | (() => void)): () => void;
export function batch<T>(work: () => T): T;
export function untracked<T>(work: () => T): T;
