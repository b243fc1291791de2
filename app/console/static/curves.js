// A session's curves: asks for the points after those it has, averages those of one step, draws.
"use strict";

(function () {
  const place = document.getElementById("curves");
  const charts = JSON.parse(place.dataset.charts);
  const TOKENS_PER_SECOND = "tokens per second";
  const SMALLEST = 1e-9;
  const SMALLEST_SHARE = 1e-4;
  const LARGEST = 1e30;
  const last = { measured: "", logged: "" };
  const curves = new Map();
  const drawn = new Map();
  let lastStep = null;

  function add(name, step, value) {
    if (!curves.has(name)) curves.set(name, new Map());
    const steps = curves.get(name);
    const mean = steps.get(step) || { sum: 0, count: 0 };
    const bounded = Math.max(-LARGEST, Math.min(LARGEST, value));
    steps.set(step, { sum: mean.sum + bounded, count: mean.count + 1 });
  }

  // The tokens of a step and its time are those since the step before.
  function addRate(point) {
    if (!("learning_rate" in point.values)) return;
    if (lastStep && point.time > lastStep.time) {
      add(TOKENS_PER_SECOND, point.step, (point.tokens - lastStep.tokens) / (point.time - lastStep.time));
    }
    lastStep = point;
  }

  function take(kind, points) {
    for (const point of points) {
      for (const [name, value] of Object.entries(point.values)) add(name, point.step, value);
      if (kind === "measured") addRate(point);
      last[kind] = point.id;
    }
  }

  function data(names) {
    const steps = [...new Set(names.flatMap((name) => [...curves.get(name).keys()]))].sort((a, b) => a - b);
    const rows = names.map((name) => steps.map((step) => {
      const mean = curves.get(name).get(step);
      return mean ? mean.sum / mean.count : null;
    }));
    return [steps, ...rows];
  }

  // An axis needs some room between its ends, or no step along it would lead on: more than rounding, and not beyond what
  // its marks are made for.
  function withRoom(least, most) {
    const apart = least === most ? Math.abs(least) / 5 : most - least;
    const span = Math.max(apart, SMALLEST_SHARE * Math.max(Math.abs(least), Math.abs(most)), SMALLEST);
    const middle = least / 2 + most / 2;
    return [middle - 0.55 * span, middle + 0.55 * span];
  }

  const scales = {
    x: { time: false, range: (_, least, most) => (least === most ? [least - 1, most + 1] : [least, most]) },
    y: { range: (_, least, most) => (least === null ? [0, 1] : withRoom(least, most)) },
  };

  function short(value) {
    return String(Number(value.toPrecision(4)));
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function options(names, width, height) {
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const values = (_, marks) => marks.map(short);
    const series = names.map((name, index) => ({
      label: name, stroke: colour(`--curve-${index + 1}`), width: 2, spanGaps: true, points: { size: 5 },
    }));
    return {
      width, height, legend: { show: false }, cursor: { y: false }, scales,
      axes: [{ ...axis, size: 30 }, { ...axis, size: 56, values }], series: [{ label: "step" }, ...series],
    };
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function caption(figure, title, names, values) {
    const line = figure.querySelector("figcaption");
    line.replaceChildren(element("strong", "", title));
    names.forEach((name, index) => {
      const row = values[index + 1];
      const at = row.findLastIndex((value) => value !== null);
      const label = names.length > 1 ? ` ${name}` : "";
      line.append(element("span", `key-${index + 1}`, label));
      line.append(element("span", "latest", ` ${short(row[at])} at step ${values[0][at]}`));
    });
  }

  // What is none of the charts comes last.
  function rank(title) {
    const at = charts.findIndex((chart) => chart.title === title);
    return at < 0 ? charts.length : at;
  }

  function figureOf(title) {
    const figure = document.createElement("figure");
    figure.dataset.title = title;
    figure.append(document.createElement("figcaption"), element("div", "chart"));
    const next = [...place.children].find((other) => rank(other.dataset.title) > rank(title));
    place.insertBefore(figure, next ?? null);
    return figure;
  }

  function draw({ title, names }) {
    const present = names.filter((name) => curves.has(name));
    if (present.length === 0) return;
    const values = data(present);
    const known = drawn.get(title);
    const figure = known ? known.figure : figureOf(title);
    if (!known || known.present.length !== present.length) {
      if (known) known.plot.destroy();
      const room = figure.querySelector(".chart");
      const plot = new uPlot(options(present, room.clientWidth, room.clientHeight), values, room);
      drawn.set(title, { figure, plot, present });
    } else {
      known.plot.setData(values);
    }
    caption(figure, title, present, values);
  }

  function drawAll() {
    document.getElementById("no-curves").hidden = curves.size > 0;
    charts.forEach(draw);
    const placed = new Set(charts.flatMap((chart) => chart.names));
    for (const name of curves.keys()) if (!placed.has(name)) draw({ title: name, names: [name] });
  }

  function drawAnew() {
    for (const { plot } of drawn.values()) plot.destroy();
    drawn.clear();
    place.replaceChildren();
    drawAll();
  }

  async function look() {
    const query = new URLSearchParams(last);
    const answer = await fetch(`${place.dataset.url}?${query}`);
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    const points = await answer.json();
    take("measured", points.measured);
    take("logged", points.logged);
    if (points.more) return look();
    drawAll();
    return points.is_live;
  }

  window.addEventListener("resize", () => {
    for (const { figure, plot } of drawn.values()) {
      const room = figure.querySelector(".chart");
      plot.setSize({ width: room.clientWidth, height: room.clientHeight });
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
  window.addEventListener("DOMContentLoaded", () => keepLooking(look));
})();
