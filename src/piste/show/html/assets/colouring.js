// Colour the text by any score.
piste.parts.push((root, data) => {
  const choice = root.querySelector(".piste-choice");
  if (!choice || !data.palette) return;
  const { palette } = data;
  function colour(strength) {
    if (Math.abs(strength) < palette.visible) return "transparent";
    const hue = strength >= 0 ? palette.for : palette.against;
    return `rgba(${hue.join(",")},${(palette.strongest * Math.abs(strength)).toFixed(2)})`;
  }
  choice.hidden = data.columns.length < 2;
  choice.querySelector("select").addEventListener("change", (event) => {
    const column = data.columns[event.target.value];
    for (const word of root.querySelectorAll(".piste-unit")) {
      word.style.background = colour(column.strengths[word.dataset.k]);
    }
    root.querySelector(".piste-above").textContent = column.sides[0];
    root.querySelector(".piste-below").textContent = column.sides[1];
    root.querySelector(".piste-meaning").textContent = column.meaning;
  });
});
