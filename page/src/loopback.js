// The back end of the page if `mpijob-webhook playground` serves it: this program computes the verdicts.
async function ask(path, question) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
  }).catch(() => {
    throw new Error("the program that serves this page has ended");
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

export function connect() {
  return {
    privacy: "What you write goes to the program on this machine that serves the page, and nowhere else.",
    data: async () => (await fetch("data.json")).json(),
    check: (question) => ask("api/check", question),
  };
}
