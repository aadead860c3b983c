// The back end of the page on any web server: the service's Python modules compute the verdicts in this browser.
export function connect() {
  const worker = new Worker("worker.js", { type: "module" });
  const waiting = new Map();
  let last = 0;
  worker.addEventListener("message", ({ data: { number, answer, problem } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (problem) reject(new Error(problem));
    else resolve(answer);
  });
  return {
    privacy: "Everything runs in this browser: nothing that you write leaves it.",
    data: async () => (await fetch("data.json")).json(),
    check: (question) =>
      new Promise((resolve, reject) => {
        waiting.set(++last, { resolve, reject });
        worker.postMessage({ number: last, question });
      }),
  };
}
