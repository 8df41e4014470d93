"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const graph = byId("graph");
  const scene = byId("scene");
  const drawing = byId("drawing");
  const details = byId("details");
  const boxes = new Map();
  for (const box of document.querySelectorAll(".op")) boxes.set(box.dataset.op, box);
  const whole = { width: graph.viewBox.baseVal.width, height: graph.viewBox.baseVal.height };
  const readers = new Map();
  for (const [key, op] of Object.entries(data.ops)) {
    for (const operand of op.operands) {
      const known = readers.get(String(operand)) || [];
      if (!known.includes(key)) known.push(key);
      readers.set(String(operand), known);
    }
  }

  // The view: a point of the drawing (x, y) lies at (x * scale + left, y * scale + top) pixels.
  const SMALLEST = 0.02;
  const LARGEST = 4;
  // Below this scale letters are too small to read, and drawing them would be most of the work.
  const READABLE = 0.35;
  const view = { left: 0, top: 0, scale: 1 };
  // With the script, a unit of the drawing is a pixel of the screen; without it, all is shown.
  graph.removeAttribute("viewBox");
  let isPending = false;
  const draw = () => {
    if (isPending) return;
    isPending = true;
    requestAnimationFrame(() => {
      isPending = false;
      apply();
    });
  };
  const apply = () => {
    scene.setAttribute("transform", `translate(${view.left} ${view.top}) scale(${view.scale})`);
    scene.classList.toggle("far", view.scale < READABLE);
  };
  const zoom = (factor, x = graph.clientWidth / 2, y = graph.clientHeight / 2) => {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
    view.left = x - ((x - view.left) * scale) / view.scale;
    view.top = y - ((y - view.top) * scale) / view.scale;
    view.scale = scale;
    draw();
  };
  const fit = () => {
    const { clientWidth: width, clientHeight: height } = graph;
    const scale = Math.min(1.2, width / whole.width, height / whole.height);
    view.scale = Math.max(SMALLEST, scale);
    view.left = (width - whole.width * view.scale) / 2;
    view.top = Math.max(0, (height - whole.height * view.scale) / 2);
    draw();
  };
  const center = (key) => {
    const [x, y] = data.centers[key];
    const margin = Number(drawing.transform.baseVal[0].matrix.e);
    view.scale = Math.max(view.scale, 0.8);
    view.left = graph.clientWidth / 2 - (x + margin) * view.scale;
    view.top = graph.clientHeight / 2 - (y + margin) * view.scale;
    draw();
  };

  // All text comes in as text: a name is never markup.
  const add = (parent, tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return parent.appendChild(element);
  };
  const addOthers = (title, keys) => {
    if (!keys.length) return;
    add(details, "h3", title);
    const list = add(details, "div", undefined, "others");
    for (const key of keys) {
      const button = add(list, "button", `#${key} ${data.ops[key].name}`);
      button.type = "button";
      button.addEventListener("click", () => {
        choose(String(key));
        center(key);
      });
    }
  };
  const addSource = (place) => {
    const source = data.sources[place];
    add(details, "h3", "source line");
    const where = add(details, "p", undefined, "source");
    if (source.uri) {
      add(where, "a", place).href = source.uri;
    } else {
      where.textContent = place;
    }
    if (!source.lines.length) return;
    const code = add(details, "pre");
    const width = String(source.lines[source.lines.length - 1][0]).length;
    for (const [number, text] of source.lines) {
      const shown = `${String(number).padStart(width)}  ${text}`;
      add(code, "span", shown, number === source.line ? "here" : "");
    }
  };
  const choose = (key) => {
    for (const box of document.querySelectorAll(".op.chosen")) box.classList.remove("chosen");
    for (const path of document.querySelectorAll("path.near")) path.classList.remove("near");
    details.replaceChildren();
    const op = data.ops[key];
    boxes.get(key).classList.add("chosen");
    const near = `path[data-from="${key}"], path[data-to="${key}"]`;
    for (const path of document.querySelectorAll(near)) path.classList.add("near");
    add(details, "h2", `#${key} ${op.name}`);
    const facts = add(details, "dl");
    for (const [title, text] of op.facts) {
      add(facts, "dt", title);
      add(facts, "dd", text);
    }
    if (op.place) addSource(op.place);
    addOthers("reads", [...new Set(op.operands)]);
    addOthers("read by", readers.get(key) || []);
  };

  const textOf = (op) =>
    [op.name, op.place || "", ...op.facts.map((fact) => fact.join(" "))].join(" ").toLowerCase();
  const texts = Object.entries(data.ops).map(([key, op]) => [key, textOf(op)]);
  let hits = [];
  let shown = -1;
  const search = () => {
    const query = byId("query").value.trim().toLowerCase();
    hits = [];
    shown = -1;
    for (const [key, text] of texts) {
      const isHit = query !== "" && text.includes(query);
      if (isHit) hits.push(key);
      boxes.get(key).classList.toggle("hit", isHit);
      boxes.get(key).classList.toggle("missed", query !== "" && !isHit);
    }
    byId("found").textContent = query === "" ? "" : `${hits.length} found`;
  };
  const next = () => {
    if (!hits.length) return;
    shown = (shown + 1) % hits.length;
    choose(hits[shown]);
    center(hits[shown]);
    byId("found").textContent = `${shown + 1} of ${hits.length}`;
  };

  const place = (event) => {
    const frame = graph.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  graph.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      zoom(Math.exp(-event.deltaY * lines * 0.0015), ...place(event));
    },
    { passive: false },
  );
  // One pointer drags, two pinch. What moved is no click.
  const pointers = new Map();
  let hasMoved = false;
  graph.addEventListener("pointerdown", (event) => {
    if (pointers.size === 0) hasMoved = false;
    pointers.set(event.pointerId, place(event));
  });
  graph.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = place(event);
    const moved = [now[0] - before[0], now[1] - before[1]];
    if (!hasMoved && Math.hypot(...moved) < 4) return;
    if (!hasMoved) {
      hasMoved = true;
      graph.setPointerCapture(event.pointerId);
      graph.classList.add("dragging");
    }
    const others = [...pointers].filter(([id]) => id !== event.pointerId);
    pointers.set(event.pointerId, now);
    if (others.length) {
      const [, fixed] = others[0];
      const distance = (point) => Math.hypot(point[0] - fixed[0], point[1] - fixed[1]);
      zoom(Math.max(1, distance(now)) / Math.max(1, distance(before)), ...fixed);
    } else {
      view.left += moved[0];
      view.top += moved[1];
      draw();
    }
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    if (pointers.size === 0) graph.classList.remove("dragging");
  };
  graph.addEventListener("pointerup", release);
  graph.addEventListener("pointercancel", release);
  graph.addEventListener("pointerleave", (event) => {
    if (!graph.hasPointerCapture(event.pointerId)) release(event);
  });
  graph.addEventListener("click", (event) => {
    const box = event.target.closest(".op");
    if (box && !hasMoved) choose(box.dataset.op);
    hasMoved = false;
  });

  byId("in").addEventListener("click", () => zoom(1.3));
  byId("out").addEventListener("click", () => zoom(1 / 1.3));
  byId("fit").addEventListener("click", fit);
  byId("query").addEventListener("input", search);
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    next();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target === byId("query") || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = event.target.closest && event.target.closest(".op");
    if (box && (event.key === "Enter" || event.key === " ")) choose(box.dataset.op);
    else if (event.key === "+") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") fit();
    else if (event.key === "/") byId("query").focus();
    else return;
    event.preventDefault();
  });

  fit();
  // A long graph is shown from its top at a size that can be read, not whole and tiny.
  if (view.scale < READABLE) {
    view.scale = Math.max(READABLE, Math.min(0.7, graph.clientWidth / whole.width));
    view.left = (graph.clientWidth - whole.width * view.scale) / 2;
    view.top = 0;
  }
  apply();
})();
