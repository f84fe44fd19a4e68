"use strict";

const theme = () => {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
  return {
    axis,
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: 430,
      font: { family: getComputedStyle(document.body).fontFamily, color: colour("--ink"), size: 13 },
      margin: { l: 60, r: 60, t: 24, b: 56 }, hoverlabel: { align: "left" },
    },
  };
};

const draw = (plot) => {
  const chosen = [...plot.querySelectorAll("select")].map((select) => select.value).join("|");
  const figure = FIGURES[plot.dataset.plot][chosen] || { data: [], layout: {} };
  const { axis, layout } = theme();
  const own = figure.layout;
  const drawn = { ...layout, ...own, xaxis: { ...axis, ...own.xaxis }, yaxis: { ...axis, ...own.yaxis } };
  if (!figure.data.length) drawn.annotations = [{ text: "not measured", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }];
  Plotly.react(plot.querySelector(".canvas"), figure.data, drawn, { displaylogo: false, responsive: true, displayModeBar: false });
};

const plots = [...document.querySelectorAll(".plot")];
for (const plot of plots) {
  draw(plot);
  plot.addEventListener("change", () => draw(plot));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(draw));

const byValue = (column, sign) => (one, other) => {
  const [a, b] = [one, other].map((row) => row.cells[column].dataset.value);
  if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
  const numbers = a !== "" && b !== "" && !isNaN(a) && !isNaN(b);
  return sign * (numbers ? a - b : a.localeCompare(b));
};

for (const head of document.querySelectorAll("th")) {
  head.querySelector("button").addEventListener("click", () => {
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const order = head.ariaSort === null || head.ariaSort === undefined ? first : head.ariaSort === "ascending" ? "descending" : "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const body = head.closest("table").tBodies[0];
    body.append(...[...body.rows].sort(byValue(head.cellIndex, order === "ascending" ? 1 : -1)));
  });
}
