declare const htm: { bind(create: (...given: any[]) => unknown): (strings: TemplateStringsArray, ...values: any[]) => any };
export default htm;
