// The part of Preact and htm that the console uses.
type Child = any;
export function html(strings: TemplateStringsArray, ...values: any[]): any;
export function render(tree: Child, parent: Element): void;
type Update<S> = (value: S | ((before: S) => S)) => void;
export function useState<S>(initial: S | (() => S)): [S, Update<S>];
export function useEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void;
export function useRef<T>(initial: T): { current: T };
export function useMemo<T>(make: () => T, deps: readonly unknown[]): T;
export function useCallback<T extends (...args: any[]) => any>(callback: T, deps: readonly unknown[]): T;
export function useErrorBoundary(): [any, () => void];
