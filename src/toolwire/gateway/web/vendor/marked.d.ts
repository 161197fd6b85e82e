export const marked: { parse(text: string, options: object): string | Promise<string>; use(extension: object): void };
