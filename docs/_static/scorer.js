// Guides before entries of the reference, the changelog last.
var Scorer = {
  score: (result) => {
    const [page, title, anchor, about, score] = result;
    if (page === "generated/changelog" || page === "generated/words") return score - 4;
    if (page.startsWith("api/") || page.startsWith("_modules/")) return score - 3;
    if (page.startsWith("recipes/") || page.startsWith("start/")) return score + 2;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 4, 1: 2, 2: -5 },
  objPrioDefault: 0,
  title: 16,
  partialTitle: 8,
  term: 5,
  partialTerm: 2,
};
