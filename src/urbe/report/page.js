// The page works without this script, which shows values in charts and switches the theme.
"use strict";
(() => {
  const keep = (name, value) => {
    try { return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value); } catch { return null; }
  };

  // Theme: as the system says, until chosen otherwise.
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const apply = (theme) => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    const isDark = theme ? theme === "dark" : dark.matches;
    button.setAttribute("aria-pressed", String(isDark));
  };
  apply(keep("urbe-theme"));
  dark.addEventListener("change", () => apply(root.dataset.theme));
  button.addEventListener("click", () => {
    const next = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    apply(next);
    keep("urbe-theme", next);
  });
  button.hidden = false;

  // Values: the nearest point to the pointer, or one after the other by arrow keys.
  const reach = 28;
  for (const drawing of document.querySelectorAll(".drawing")) {
    const data = drawing.querySelector("script"), images = [...drawing.querySelectorAll("svg")];
    if (!data) continue;
    const inside = (svg, { x, y }) => {
      const view = svg.viewBox.baseVal;
      return x >= view.x && x <= view.x + view.width && y >= view.y && y <= view.y + view.height;
    };
    const imageOf = (point) => images.find((svg) => inside(svg, point)) || images[0];
    const series = [], panels = JSON.parse(data.textContent);
    panels.forEach(([title, across, all]) => all.forEach(([name, points]) => {
      series.push(points.map(([x, y, where, value]) => ({
        x, y, text: `${name}: ${value}` + (where === "" ? "" : `, at ${across ? across + " " : ""}${where}`),
        panel: panels.length > 1 && title ? `. Panel: ${title}` : "",
      })));
    }));
    const ring = document.createElementNS(images[0].namespaceURI, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "6");
    const tip = drawing.querySelector(".tip");
    let s = -1, i = 0;
    const hide = () => { ring.remove(); tip.hidden = true; tip.textContent = ""; };
    const show = (point, panel) => {
      const svg = imageOf(point);
      ring.setAttribute("cx", point.x);
      ring.setAttribute("cy", point.y);
      svg.append(ring);
      tip.textContent = point.text + panel;
      tip.hidden = false;
      const box = svg.getBoundingClientRect(), outer = drawing.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const left = ((point.x - view.x) / view.width) * box.width + box.left - outer.left + drawing.scrollLeft;
      const most = Math.max(drawing.scrollLeft + drawing.clientWidth - tip.offsetWidth - 4, 0);
      tip.style.left = `${Math.min(Math.max(left + 10, drawing.scrollLeft), most)}px`;
      const top = ((point.y - view.y) / view.height) * box.height + box.top - outer.top;
      tip.style.top = `${Math.max(top - tip.offsetHeight - 10, 0)}px`;
    };
    for (const svg of images) svg.addEventListener("pointermove", (event) => {
      const matrix = svg.getScreenCTM();
      if (!matrix) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      let best = reach * reach, found = null;
      series.forEach((points, a) => points.forEach((point, b) => {
        const far = (point.x - at.x) ** 2 + (point.y - at.y) ** 2;
        if (far < best && inside(svg, point)) { best = far; found = [a, b]; }
      }));
      if (!found) { hide(); return; }
      [s, i] = found;
      show(series[s][i], "");
    });
    images.forEach((svg) => svg.addEventListener("pointerleave", hide));
    drawing.addEventListener("blur", hide);
    drawing.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: 0, End: 1 };
      if (event.key === "Escape") { hide(); return; }
      if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const step = steps[event.key], old = s < 0 ? null : series[s][i];
      if (!old) { s = 0; i = 0; }
      else if (step === 0) i = 0;
      else if (step === 1) i = series[s].length - 1;
      else if (step[0]) {
        s = (s + step[0] + series.length) % series.length;
        const far = (point) => Math.abs(point.x - old.x);
        i = series[s].reduce((near, point, k, all) => (far(point) < far(all[near]) ? k : near), 0);
      } else i = Math.min(Math.max(i + step[1], 0), series[s].length - 1);
      show(series[s][i], series[s][i].panel); // with keys, say which panel
    });
  }
})();
