type Change<S> = S | ((old: S) => S);
export function useState<S>(initial: S | (() => S)): [S, (change: Change<S>) => void];
export function useRef<T>(initial: T): { current: T };
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useCallback<T>(work: T, inputs: unknown[]): T;
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
