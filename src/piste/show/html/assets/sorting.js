// Sort tables: words from a to z, numbers from large to small first or as the column says.
piste.sortable = (table) => {
  const key = (row, index) => {
    const { v } = row.children[index].dataset;
    if (v === undefined) return row.children[index].textContent.toLowerCase();
    return v === "" ? null : Number(v);
  };
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null); // unknown ones stay last
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
  }
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.tBodies[0];
  heads.forEach((head, index) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const first = head.dataset.first || (index ? "descending" : "ascending");
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [key(row, index), row]);
      rows.sort((a, b) => compare(a[0], b[0], sign));
      body.append(...rows.map((pair) => pair[1]));
    });
  });
};
piste.parts.push((root) => { for (const table of root.querySelectorAll("table")) piste.sortable(table); });
