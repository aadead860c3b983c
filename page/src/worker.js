import { loadPyodide } from "./pyodide.js";
import { start } from "./python.js";

const started = (async () => {
  const names = await (await fetch("archives.json")).json();
  const archives = names.map(async (name) => [name, await (await fetch(name)).arrayBuffer()]);
  return start(loadPyodide, { indexURL: new URL(".", location.href).href }, await Promise.all(archives));
})();

addEventListener("message", async ({ data: { number, question } }) => {
  try {
    postMessage({ number, answer: (await started)(question) });
  } catch (error) {
    postMessage({ number, problem: error.message });
  }
});
