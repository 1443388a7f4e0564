// The charts, drawn by uPlot in the page's own colours. The shapes that the server drew are replaced.
"use strict";
(() => {
  const HEIGHT = 180;
  const charts = new Map();

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function millis(value) {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    if (value < 999.5) return `${value.toFixed(0)} ms`;
    if (value < 99500) return `${(value / 1000).toFixed(value < 9950 ? 1 : 0)} s`;
    return `${(value / 60000).toFixed(0)} min`;
  }

  function clock(seconds) {
    return new Date(seconds * 1000).toISOString().slice(11, 16);
  }

  function tell(kind, data, place) {
    const at = clock(data[0][place]);
    if (kind === "bars") return `${at} · ${data[1][place]} done, ${data[2][place]} failed`;
    return `${at} · p50 ${millis(data[1][place])}, p95 ${millis(data[2][place])}`;
  }

  function shownData(kind, data) {
    if (kind === "lines") return [data[0], data[2], data[1]];
    return [data[0], data[1].map((done, place) => done + data[2][place]), data[1]];
  }

  function isEmpty(data) {
    return !data.slice(1).some((line) => line.some((value) => value));
  }

  function axes(kind) {
    const common = { font: "11px Inter Variable, system-ui, sans-serif", stroke: colour("faint"), ticks: { show: false } };
    return [
      { ...common, grid: { show: false }, size: 24, space: 70, values: (_, at) => at.map(clock) },
      {
        ...common,
        size: kind === "bars" ? 40 : 52,
        space: 40,
        gap: 6,
        grid: { stroke: colour("line"), width: 1 },
        values: (_, at) => at.map((value) => (kind === "bars" ? value.toLocaleString("en") : millis(value))),
      },
    ];
  }

  function series(kind) {
    if (kind === "lines") {
      return [
        {},
        { stroke: colour("ghost"), width: 1.6, points: { show: false }, spanGaps: true },
        { stroke: colour("running"), width: 1.8, points: { show: false }, spanGaps: true },
      ];
    }
    const paths = uPlot.paths.bars({ size: [0.82, 40], radius: 0.15 });
    return [
      {},
      { fill: colour("dead"), stroke: colour("dead"), width: 0, paths, points: { show: false } },
      { fill: colour("done"), stroke: colour("done"), width: 0, paths, points: { show: false } },
    ];
  }

  function draw(element) {
    const data = JSON.parse(element.dataset.series);
    const kind = element.dataset.chart;
    forget(element.id);
    if (isEmpty(data)) return;
    element.replaceChildren();
    const tip = document.createElement("div");
    tip.className = "tip hidden";
    const chart = { data };
    // Half a step, so that the first and the last bar are whole.
    const margin = kind === "bars" ? (data[0][1] - data[0][0]) / 2 : 0;
    const options = {
      width: element.clientWidth,
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === "lines", size: 6 } },
      scales: { x: { time: true, range: (_, low, high) => [low - margin, high + margin] }, y: { range: (_, low, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: axes(kind),
      series: series(kind),
      hooks: {
        setCursor: [
          (plot) => {
            const place = plot.cursor.idx;
            const isInside = place !== null && place !== undefined && plot.cursor.left >= 0;
            tip.classList.toggle("hidden", !isInside);
            if (!isInside) return;
            tip.textContent = tell(kind, chart.data, place);
            const left = Math.min(plot.cursor.left + plot.bbox.left / devicePixelRatio, element.clientWidth - tip.offsetWidth);
            tip.style.left = `${Math.max(left, 0)}px`;
            tip.style.top = "-14px";
          },
        ],
      },
    };
    chart.plot = new uPlot(options, shownData(kind, data), element);
    chart.plot.root.setAttribute("role", "img");
    chart.plot.root.setAttribute("aria-label", element.dataset.title);
    element.append(tip);
    chart.observer = new ResizeObserver(() => {
      if (element.clientWidth) chart.plot.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    chart.observer.observe(element);
    charts.set(element.id, chart);
  }

  function forget(id) {
    const chart = charts.get(id);
    if (!chart) return;
    chart.observer.disconnect();
    chart.plot.destroy();
    charts.delete(id);
  }

  // What the server has sent anew for a chart that stands already.
  function update(element, fresh) {
    const chart = charts.get(element.id);
    if (element.dataset.series === fresh.dataset.series && chart) return;
    element.dataset.series = fresh.dataset.series;
    element.dataset.title = fresh.dataset.title;
    const data = JSON.parse(fresh.dataset.series);
    if (!chart || isEmpty(data)) {
      draw(element);
      return;
    }
    chart.data = data;
    chart.plot.setData(shownData(element.dataset.chart, data));
  }

  function drawAll() {
    for (const id of [...charts.keys()]) if (!document.getElementById(id)) forget(id);
    for (const element of document.querySelectorAll("[data-chart]")) if (!charts.has(element.id)) draw(element);
  }

  window.drumlineCharts = { update };
  drawAll();
  document.addEventListener("htmx:afterSwap", drawAll);
  document.addEventListener("drumline:theme", () => {
    for (const element of document.querySelectorAll("[data-chart]")) draw(element);
  });
})();
