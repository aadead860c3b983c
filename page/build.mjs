// Builds the page into a folder: `node build.mjs FOLDER`.
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const { metafile } = await build({
  entryPoints: ["page", "loopback", "static", "worker"].map((name) => `src/${name}.js`),
  outdir: folder,
  bundle: true,
  // Not bundled, because each way to serve the page adds its own files: backend.js gets the verdicts, and pyodide.js,
  // if present, computes them in the browser.
  external: ["./backend.js", "./pyodide.js"],
  format: "esm",
  target: "es2022",
  minify: true,
  metafile: true,
  logLevel: "warning",
});
for (const name of ["index.html", "page.css"]) cpSync(join("src", name), join(folder, name));

const packages = new Set(
  Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []),
);
const licences = [...packages].sort().map((name) => {
  const root = join("node_modules", name);
  const file = readdirSync(root).find((each) => /^licen[cs]e/i.test(each));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return `${name} ${version}\n\n${readFileSync(join(root, file), "utf8")}`;
});
writeFileSync(join(folder, "licences.txt"), licences.join("\n----\n\n"));
