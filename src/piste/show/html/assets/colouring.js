// Colour the text by any score.
piste.parts.push((root, data) => {
  const choice = root.querySelector(".piste-choice");
  if (!choice || !data.palette) return;
  const { palette } = data;
  choice.hidden = data.columns.length < 2;
  choice.querySelector("select").addEventListener("change", (event) => {
    const column = data.columns[event.target.value];
    for (const word of root.querySelectorAll(".piste-unit")) {
      word.style.background = piste.colour(palette, column.strengths[word.dataset.k]);
    }
    root.querySelector(".piste-above").textContent = column.sides[0];
    root.querySelector(".piste-below").textContent = column.sides[1];
    root.querySelector(".piste-meaning").textContent = column.meaning;
  });
});
