"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const find = (selector) => [...document.querySelectorAll(selector)];
  const figures = find("figure[data-chart]");
  const picker = document.getElementById("run");
  const root = document.documentElement;
  const OPTIONS = {
    displaylogo: false,
    responsive: true,
    modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]], // none that shares
  };

  // Colours. A chart names them as the style sheet does; the browser says what each is now.
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const known = new Map();
  const colour = (name) => {
    if (!known.has(name)) {
      probe.style.color = name;
      known.set(name, getComputedStyle(probe).color);
    }
    return known.get(name);
  };
  const COLOURED = ["color", "gridcolor", "linecolor", "bgcolor", "bordercolor"];
  const paint = (value, key) => {
    if (key === "colorscale") return value.map(([at, name]) => [at, colour(name)]);
    if (Array.isArray(value)) {
      return typeof value[0] === "object" && key === "" ? value.map((each) => paint(each, "")) : value;
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, paint(own, name)]));
    }
    return COLOURED.includes(key) && String(value).startsWith("var(") ? colour(value) : value;
  };

  // Charts, drawn when they come into view.
  const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
  const chartOf = (figure) =>
    own(page.charts.shared, figure.dataset.chart) ??
    own(own(page.charts.runs, picker.value) ?? {}, figure.dataset.chart);
  const font = getComputedStyle(document.body).fontFamily;

  const draw = (figure) => {
    const chart = chartOf(figure);
    if (!chart) return;
    const layout = paint(chart.layout, "");
    layout.font.family = font;
    if (figure.clientWidth < 480) layout.legend = { ...layout.legend, y: -0.28, yanchor: "top" };
    const plot = figure.querySelector(".plot");
    Plotly.react(plot, paint(chart.data, ""), layout, OPTIONS).then(() => {
      if (!figure.dataset.stale) figure.dataset.drawn = "yes"; // as the page is now
      // Said in words beside it: a screen reader need not spell the labels of axes.
      plot.querySelectorAll(".main-svg").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
    });
  };
  const describe = (figure) => {
    const chart = chartOf(figure);
    figure.hidden = !chart;
    if (!chart) return;
    figure.querySelector("h3").textContent = chart.title;
    figure.querySelector(".sentence").textContent = chart.sentence;
    figure.querySelector(".plot").setAttribute("aria-label", `Chart: ${chart.title}`);
    if (figure.querySelector("details").open) tabulate(figure);
  };
  const makeRow = (cells, heading) => {
    const row = document.createElement("tr");
    cells.forEach((text, place) => {
      const cell = document.createElement(heading || place === 0 ? "th" : "td");
      if (heading || place === 0) cell.scope = heading ? "col" : "row";
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  };
  const tabulate = (figure) => {
    const chart = chartOf(figure);
    if (!chart) return;
    const head = document.createElement("thead");
    const body = document.createElement("tbody");
    head.append(makeRow(chart.head, true));
    body.append(...chart.rows.map((cells) => makeRow(cells, false)));
    figure.querySelector("table").replaceChildren(head, body);
  };
  const seen = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ target, isIntersecting }) => {
        target.dataset.near = isIntersecting ? "yes" : "";
        if (isIntersecting && target.dataset.stale !== "") refresh(target);
      }),
    { rootMargin: "300px" },
  );
  const refresh = (figure) => {
    figure.dataset.stale = "";
    draw(figure);
  };
  const update = () => {
    figures.forEach((figure) => {
      describe(figure);
      figure.dataset.stale = "yes";
      figure.dataset.drawn = "";
      if (figure.dataset.near) refresh(figure);
    });
    find("main > section").forEach((section) => {
      const inside = [...section.querySelectorAll("figure")];
      if (inside.length) section.hidden = inside.every((figure) => figure.hidden);
      const link = document.querySelector(`nav a[href="#${section.id}"]`);
      if (link) link.parentElement.hidden = section.hidden;
    });
  };
  figures.forEach((figure) => {
    figure.querySelector("details").addEventListener("toggle", (event) => {
      if (event.target.open) tabulate(figure);
    });
    seen.observe(figure);
  });

  // Light and dark.
  const repaint = () => {
    known.clear();
    update();
  };
  const isDark = () => getComputedStyle(root).colorScheme === "dark" ||
    (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const remember = (theme) => {
    try {
      localStorage.setItem("concont-theme", theme);
    } catch {
      // a page opened from a file may have no storage
    }
  };
  try {
    const theme = localStorage.getItem("concont-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // as above
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  let before = "";
  addEventListener("beforeprint", () => {
    before = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    known.clear();
    figures.filter((figure) => !figure.hidden).forEach(refresh);
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    repaint();
  });

  // One run in detail, and its review list.
  const words = document.getElementById("words");
  const label = document.getElementById("class");
  const order = document.getElementById("order");
  const gallery = () => find("[data-gallery]").find((list) => list.dataset.run === picker.value);
  const COMPARE = {
    rank: (a, b) => a.dataset.rank - b.dataset.rank,
    "-rank": (a, b) => b.dataset.rank - a.dataset.rank,
    probability: (a, b) => a.dataset.probability - b.dataset.probability,
    score: (a, b) => a.dataset.score - b.dataset.score,
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
  };
  const filter = () => {
    const list = gallery();
    if (!list) return;
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const cards = [...list.children];
    cards.forEach((card) => {
      const inside = wanted.every((word) => card.dataset.words.includes(word));
      card.hidden = !inside || (label.value !== "" && card.dataset.class !== label.value.slice(1));
    });
    const count = cards.filter((card) => !card.hidden).length;
    document.getElementById("shown").textContent = `${count} of ${cards.length} images`;
  };
  const sort = () => {
    const list = gallery();
    if (list) list.append(...[...list.children].sort(COMPARE[order.value]));
  };
  const offerLabels = () => {
    const list = gallery();
    if (!list) return;
    const names = [...new Set([...list.children].map((card) => card.dataset.class))].sort((a, b) =>
      a.localeCompare(b, undefined, { numeric: true }),
    );
    label.replaceChildren(
      new Option("all", ""),
      ...names.map((name) => new Option(name, `=${name}`)), // so that no name means "all"
    );
  };
  const choose = () => {
    find("[data-run]").forEach((part) => {
      part.hidden = part.dataset.run !== picker.value;
    });
    if (words) {
      const review = document.getElementById("review");
      review.hidden = !gallery();
      offerLabels();
      sort();
      filter();
    }
    update();
  };
  picker.addEventListener("change", choose);
  if (words) {
    words.form.addEventListener("submit", (event) => event.preventDefault());
    words.addEventListener("input", filter);
    label.addEventListener("change", filter);
    order.addEventListener("change", sort);
  }
  choose();

  // What changed, while runs train.
  if (!page.live) return;
  const status = document.getElementById("live");
  let version = page.version;
  const offerRuns = (names) => {
    const chosen = picker.value;
    picker.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(chosen)) picker.value = chosen;
    document.getElementById("picker").hidden = names.length < 2;
  };
  const apply = ({ version: now, parts }) => {
    version = now;
    for (const [name, content] of Object.entries(parts)) {
      const [kind, rest] = [name.split("/", 1)[0], name.slice(name.indexOf("/") + 1)];
      if (kind === "html") document.querySelector(`[data-part="${rest}"]`).innerHTML = content;
      else if (kind === "shared") page.charts.shared = content;
      else if (kind === "runs") offerRuns(content);
      else if (kind === "run") page.charts.runs[rest] = content;
    }
    if (Object.keys(parts).length) choose();
  };
  const poll = async () => {
    try {
      const answer = await fetch(`state.json?since=${version}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      apply(await answer.json());
      status.textContent = "live";
    } catch {
      status.textContent = "not connected";
    }
    setTimeout(poll, 1500);
  };
  setTimeout(poll, 500);
})();
