// The page: it sends the texts of three panes to the back end, and shows the verdict.
import { connect } from "./backend.js";
import { element } from "./dom.js";
import { Pane } from "./pane.js";
import { showResults, summary } from "./results.js";
import { load, save } from "./state.js";

const NAMES = ["job", "policy", "cluster"];
const PAUSE = 250;
const status = document.getElementById("status");
const results = document.getElementById("results");

const backend = connect();
const [data, kept] = await Promise.all([backend.data(), load()]);
const panes = Object.fromEntries(
  NAMES.map((name) => [
    name,
    new Pane(document.getElementById(name), {
      examples: data.examples[name],
      schema: data.schemas[name],
      text: kept?.[name] ?? (name === "job" ? beginning(data.examples.job) : ""),
      changed: later,
    }),
  ]),
);
document.getElementById("version").textContent = `mpijob-webhook ${data.version}.`;
document.getElementById("privacy").textContent = backend.privacy;
if (data.documentation) document.getElementById("share").before(element("a", { href: data.documentation }, "Documentation"));
document.getElementById("share").addEventListener("click", share);
window.addEventListener("hashchange", async () => {
  const linked = await load();
  if (!linked) return;
  for (const name of NAMES) {
    panes[name].text = linked[name] ?? "";
  }
});

let timer;
let last = 0;
check();

function beginning(examples) {
  return (examples.find((each) => each.name.startsWith("Bad: one")) ?? examples[0]).text;
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

async function check() {
  const question = Object.fromEntries(NAMES.map((name) => [name, panes[name].text]));
  const number = ++last;
  try {
    const answer = await backend.check(question);
    if (number !== last) return; // a newer text is being checked
    for (const name of NAMES) panes[name].mark(marks(answer, name));
    results.replaceChildren(...showResults(answer, data.explanations, (line, pane = "job") => panes[pane].goTo(line)));
    await save(question);
    if (number !== last) return;
    const refused = answer.faults.length || answer.jobs.some((job) => !job.allowed);
    status.className = refused ? "refused" : "admitted";
    say(summary(answer));
  } catch (error) {
    if (number === last) say(`There is no verdict: ${error.message}`);
  }
}

// Screen readers read the status aloud when it changes, so the same text is not written again at each key press.
function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

function marks({ jobs, faults }, pane) {
  const found = faults.filter((fault) => fault.pane === pane).map((fault) => ({ ...fault, severity: "error" }));
  if (pane !== "job") return found;
  for (const job of jobs) {
    found.push(...job.causes.map((cause) => ({ ...cause, severity: "error" })));
    found.push(...job.warnings.map((warning) => ({ ...warning, severity: "warning" })));
  }
  return found;
}

async function share({ target }) {
  await check();
  const done = await navigator.clipboard.writeText(location.href).then(
    () => "Copied",
    () => "Copy it from the address bar",
  );
  target.textContent = done;
  setTimeout(() => (target.textContent = "Copy link"), 2000);
}
