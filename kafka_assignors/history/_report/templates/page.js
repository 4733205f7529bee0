"use strict";
// All is readable without this: it sorts the overview.
for (const head of document.querySelectorAll("th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const value = (row) => {
      const cell = row.cells[head.cellIndex];
      return head.dataset.sort === "number" ? Number(cell.dataset.value) : cell.textContent;
    };
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      return (a < b ? -1 : a > b ? 1 : 0) * (down ? 1 : -1);
    });
    body.append(...rows);
  });
}
