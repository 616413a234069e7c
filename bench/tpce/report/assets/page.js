// Draws the page's charts from the JSON beside it, in the colours of the page's style, anew when those
// change or the window does.
"use strict";
(function () {
  const charts = JSON.parse(document.getElementById("data").textContent) || [];
  const dashes = [[], [6, 3], [2, 3]];
  const borders = ["solid", "dashed", "dotted"]; // the same in the legend
  const height = 260;
  let drawn = [];

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function number(v) {
    if (v === null || v === undefined) return "–";
    const a = Math.abs(v);
    return v.toLocaleString("en-US", { maximumFractionDigits: a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3, useGrouping: false });
  }

  // short writes a number for an axis: 20000 is 20k.
  function short(v) {
    const a = Math.abs(v);
    return a >= 1e6 ? number(v / 1e6) + "M" : a >= 1e4 ? number(v / 1e3) + "k" : number(v);
  }

  // percent writes a number of nines, 2 is 99 %, with as many digits as tell it from 100 %.
  function percent(n) {
    const value = 100 - Math.pow(10, 2 - n);
    const whole = Math.abs(n - Math.round(n)) < 1e-6 || Math.abs(value - Math.round(value)) < 1e-6;
    return value.toFixed(Math.max(0, Math.ceil(n - 1e-6) - 2) + (whole ? 0 : 1)) + " %";
  }

  const nines = [0, Math.log10(2), 1, 2, 3, 4, 5, 6];

  function xAxis(chart) {
    const axis = { label: chart.xLabel };
    if (chart.axis === "nines") {
      axis.splits = (u, i, min, max) => nines.filter((n) => n >= min - 1e-9 && n <= max + 1e-9);
      axis.values = (u, splits) => splits.map(percent);
    } else if (chart.steps) {
      axis.splits = () => chart.steps;
      axis.filter = (u, splits) => splits;
      axis.values = (u, splits) => splits.map(number);
    } else {
      axis.values = (u, splits) => splits.map(number);
    }
    return axis;
  }

  // logSplits are the powers of ten, and what lies between them where there is room.
  function logSplits(u, i, min, max) {
    const decades = Math.log10(max / min);
    const parts = decades <= 1.5 ? [1, 2, 3, 5, 7] : decades <= 3 ? [1, 2, 5] : [1];
    const splits = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
      for (const p of parts) {
        const v = p * Math.pow(10, e);
        if (v >= min * 0.999 && v <= max * 1.001) splits.push(v);
      }
    }
    return splits;
  }

  // logRange leaves a little room above and below.
  function logRange(u, min, max) {
    if (min === null || max === null) return [1, 10];
    return [min / 1.3, max * 1.3];
  }

  function linearRange(u, min, max) {
    return [0, max > 0 ? max * 1.08 : 1];
  }

  function xRange(chart) {
    return function (u, min, max) {
      if (min === null || max === null) return [0, 1];
      if (chart.axis === "log") return [min / 1.2, max * 1.2];
      if (chart.steps) return [0, max * 1.1];
      return min === max ? [min - 1, max + 1] : [min, max];
    };
  }

  function shadeRamp(u) {
    const zero = Math.min(u.valToPos(0, "x", true), u.bbox.left + u.bbox.width);
    if (zero <= u.bbox.left) return;
    u.ctx.save();
    u.ctx.fillStyle = style("--shade");
    u.ctx.fillRect(u.bbox.left, u.bbox.top, zero - u.bbox.left, u.bbox.height);
    u.ctx.restore();
  }

  function draw(figure) {
    const chart = charts[Number(figure.dataset.chart)];
    const box = figure.lastElementChild;
    box.textContent = "";
    const ink = style("--ink"), grid = style("--grid");
    const font = "12px system-ui, sans-serif";
    const look = { stroke: ink, font: font, labelFont: font, labelSize: 20, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const yAxis = { label: chart.yLabel, size: 58, values: (u, splits) => splits.map(short) };
    if (chart.logY) Object.assign(yAxis, { splits: logSplits, filter: (u, splits) => splits });
    const xName = { nines: "percentile", seconds: "second" }[chart.axis] || chart.xLabel.replace(/ \(.*/, "");
    const options = {
      width: box.clientWidth, height: height,
      scales: {
        x: { time: false, distr: chart.axis === "log" ? 3 : 1, range: xRange(chart) },
        y: { distr: chart.logY ? 3 : 1, range: chart.logY ? logRange : linearRange },
      },
      axes: [Object.assign({}, look, xAxis(chart)), Object.assign({}, look, yAxis)],
      series: [{ label: xName, value: (u, v) => v === null ? "–" : chart.axis === "nines" ? percent(v) : number(v) }],
      legend: { markers: { width: 2, dash: (u, i) => borders[chart.lines[i - 1].dash % borders.length] } },
      hooks: chart.axis === "seconds" ? { drawClear: [shadeRamp] } : {},
    };
    const tables = [];
    for (const line of chart.lines) {
      options.series.push({
        label: line.name, stroke: style("--c" + line.color), width: 2, dash: dashes[line.dash % dashes.length], spanGaps: true,
        points: { show: Boolean(chart.steps) || line.x.length < 3 }, value: (u, v) => number(v),
      });
      tables.push([line.x, line.y]);
    }
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0] || [[]];
    drawn.push(new uPlot(options, data, box));
  }

  function drawAll() {
    drawn.forEach((u) => u.destroy());
    drawn = [];
    document.querySelectorAll("figure[data-chart]").forEach(draw);
  }

  let wait = 0;
  window.addEventListener("resize", function () {
    clearTimeout(wait);
    wait = setTimeout(drawAll, 100);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
