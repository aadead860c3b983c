// Runs the service's Python modules in Pyodide, so that verdicts need no server.
const SITE = "/site";

// `archives` are [name, bytes]. Returns a function with the input and output of /api/check.
export async function start(loadPyodide, options, archives) {
  const python = await loadPyodide(options);
  for (const [name, bytes] of archives) {
    python.unpackArchive(bytes, name.endsWith(".whl") ? "wheel" : "zip", { extractDir: SITE });
  }
  python.runPython(`import sys; sys.path.insert(0, "${SITE}")`);
  const answer = python.runPython(`
import json
from webhook.parts.playground import verdicts
lambda question: json.dumps(verdicts.answer(json.loads(question)))
`);
  return (question) => JSON.parse(answer(JSON.stringify(question)));
}
