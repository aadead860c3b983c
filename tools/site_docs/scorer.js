// The order of search results. The build writes READERS, the pages for users and administrators, before this text.
// Sphinx (searchtools.js) defines the fields. Its own scores do not depend on the readers of a page.
var Scorer = {
  score: ([page, title, , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/\w{4,}/g) || [];
    const named = words.filter((word) => title.toLowerCase().includes(word)).length;
    return score + 5 * named + (READERS.includes(page) ? 50 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
