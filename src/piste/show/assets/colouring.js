(() => {
  // Colour the text by any score.
  const data = JSON.parse(document.querySelector(".piste-data").textContent);
  const words = document.querySelectorAll(".piste-unit");
  const choice = document.querySelector(".piste-choice");
  const { palette } = data;
  function colour(strength) {
    if (Math.abs(strength) < palette.visible) return "transparent";
    const hue = strength >= 0 ? palette.for : palette.against;
    return `rgba(${hue.join(",")},${(palette.strongest * Math.abs(strength)).toFixed(2)})`;
  }
  choice.hidden = data.columns.length < 2;
  choice.querySelector("select").addEventListener("change", (event) => {
    const column = data.columns[event.target.value];
    for (const word of words) word.style.background = colour(column.strengths[word.dataset.k]);
    document.querySelector(".piste-above").textContent = column.sides[0];
    document.querySelector(".piste-below").textContent = column.sides[1];
    document.querySelector(".piste-meaning").textContent = column.meaning;
  });
})();
