// Computes verdicts with Pyodide in Node: `node answers.mjs python.js FOLDER ARCHIVE...`, with JSON input and output.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [program, folder, ...archives] = process.argv.slice(2);
const { start } = await import(pathToFileURL(resolve(program)));
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.js")));
// For an error, Node would print the line of code that raised it; in Pyodide such a line is a megabyte long.
process.on("uncaughtException", ({ message }) => {
  process.stderr.write(message);
  process.exitCode = 1;
});
const answer = await start(
  loadPyodide,
  { indexURL: folder },
  archives.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]),
);
const questions = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(questions.map(answer)));
