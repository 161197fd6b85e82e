declare const DOMPurify: { sanitize(text: string, options: object): unknown; addHook(name: string, hook: (element: Element) => void): void };
export default DOMPurify;
