// Our own modules in Pyodide: what the service says, without it.
const SITE = "/site";

// `archives` are [name, bytes]; what comes back answers questions as /api/check does.
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
