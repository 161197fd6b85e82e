// Draws the Mermaid diagrams of docs/*.md as SVG for the documentation site, which loads no scripts:
//   npm install --prefix build beautiful-mermaid && node docs/diagrams/draw.mjs
// A drawing is named by the hash of its source; docs/site_pages.py puts it in the source's place.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const library = join(here, "../../build/node_modules/beautiful-mermaid/dist/index.js");
const { renderMermaidSVG } = await import(pathToFileURL(library));

for (const name of readdirSync(here)) if (name.endsWith(".svg")) rmSync(join(here, name));
const docs = join(here, "..");
for (const name of readdirSync(docs).filter((one) => one.endsWith(".md"))) {
  for (const [, source] of readFileSync(join(docs, name), "utf8").matchAll(/```mermaid\n([^]*?)```/g)) {
    const drawn = renderMermaidSVG(source, { font: "sans-serif", muted: "#3f3f46" }).replace(/ *@import url[^;]*;[^;\n]*;?[^\n]*\n/, "");
    const hash = createHash("sha256").update(source).digest("hex").slice(0, 12);
    writeFileSync(join(here, `${hash}.svg`), drawn);
  }
}
