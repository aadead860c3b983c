// Shows the verdicts on the jobs.
import { element as e } from "./dom.js";

export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export function summary({ jobs, faults }) {
  if (faults.length && !jobs.length) return `This cannot be judged: ${count(faults.length, "fault")}.`;
  const each = jobs.map(
    (job) =>
      `${job.name || "the job"} would be ${job.allowed ? "admitted" : "rejected"}` +
      (job.causes.length ? `, ${count(job.causes.length, "problem")}` : "") +
      (job.warnings.length ? `, ${count(job.warnings.length, "warning")}` : ""),
  );
  return `${each.join("; ")}.`;
}

export function showResults({ jobs, faults }, explanations, goTo) {
  const shown = faults.map(({ pane, line, message }) =>
    e("p", { class: "fault" }, ...button(line, () => goTo(line, pane)), e("strong", {}, `In the ${pane}: `), message),
  );
  return [...shown, ...jobs.map((job) => showJob(job, explanations, goTo, jobs.length > 1))];
}

// A single job has no heading, because the status above it has the same text.
function showJob(job, explanations, goTo, named) {
  const finding = (each, kind) => showFinding(each, kind, explanations, goTo);
  return e(
    "article",
    {},
    ...(named ? [e("h2", {}, `${job.namespace}/${job.name}: ${job.allowed ? "admitted" : "rejected"}`)] : []),
    ...(job.updates ? [e("p", {}, "The cluster has it already, so this is judged as a change to it.")] : []),
    ...list("Problems", job.causes.map((each) => finding(each, "problem"))),
    ...list("Warnings", job.warnings.map((each) => finding(each, "warning"))),
    ...(job.allowed ? showInjected(job, explanations) : []),
    ...list("Not judged", job.notJudged.map(({ why, what }) => e("li", { class: "hint" }, `Rules that need ${what.join(", ")}: ${why}`))),
    ...(job.decidedBy ? [e("p", { class: "hint" }, `Decided by: ${job.decidedBy}`)] : []),
  );
}

function list(title, items) {
  return items.length ? [e("h3", {}, title), e("ul", {}, ...items)] : [];
}

function showFinding({ rule, field, message, fix, line }, kind, explanations, goTo) {
  const item = e("li", { class: kind });
  item.append(...button(line, () => goTo(line)));
  if (field) item.append(e("code", {}, field), e("br"));
  item.append(message, ...(fix ? [". ", e("span", { class: "fix" }, fix)] : []));
  if (rule) item.append(explain(rule, explanations));
  return item;
}

function button(line, go) {
  if (!line) return [];
  const made = e("button", { type: "button", class: "line" }, `Line ${line}`);
  made.addEventListener("click", go);
  return [made, " "];
}

function explain(id, explanations) {
  const found = explanations[id.split("/")[0]];
  const summary = e("summary", {}, id);
  if (!found) return e("p", { class: "hint" }, id);
  return e(
    "details",
    { class: "explain" },
    summary,
    e("p", {}, found.summary),
    ...found.explanation.split("\n\n").filter(Boolean).map((paragraph) => e("p", {}, paragraph)),
    ...(found.policy ? [e("p", {}, "Settings in a policy, with their defaults:"), code(found.policy.trimEnd().split("\n"), "Policy")] : []),
  );
}

function showInjected({ injected, diff }, explanations) {
  if (!injected.length) return [e("p", {}, "Nothing is injected.")];
  const items = injected.map(({ id, notes }) =>
    e("li", {}, notes.join("; "), explain(id, explanations)),
  );
  return [...list("Injected", items), e("h3", {}, "Changes to the job"), code(diff, "Changes to the job as a diff", true)];
}

// The tabindex lets users scroll the text with the keyboard.
function code(lines, label, diff = false) {
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  return e(
    "pre",
    { tabindex: "0", role: "region", "aria-label": label },
    ...lines.map((line) => e("span", diff && kinds[line[0]] ? { class: kinds[line[0]] } : {}, line)),
  );
}
