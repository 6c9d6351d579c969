// Find words: rows without them are hidden, and their dots step back.
piste.parts.push((root, data) => {
  const place = root.querySelector(".piste-find");
  if (!place || !data.names) return;
  const input = place.querySelector("input");
  const status = place.querySelector("[role=status]");
  const lower = data.names.map((name) => name.toLowerCase());
  place.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    const found = lower.map((name) => name.includes(wanted));
    for (const element of root.querySelectorAll("[data-k]")) {
      element.classList.toggle("piste-unfound", !found[element.dataset.k]);
      element.classList.toggle("piste-found", wanted !== "" && found[element.dataset.k]);
    }
    status.textContent = wanted ? `${found.filter(Boolean).length} of ${lower.length}` : "";
  });
});
