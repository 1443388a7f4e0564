// The page is alive: when the fleet has changed, it is asked for again, and only what differs is exchanged.
"use strict";
(() => {
  const WORDS = { live: "Live", held: "Held", lost: "Connection lost", connecting: "Connecting" };
  const COUNTED = ["jobs", "schedules", "dead", "queues", "workers", "replicas"].map((name) => `#n-${name}`).join(",");
  // A page that follows one job looks twice a second; what happens inside a job is no change of the fleet.
  const LOOK_EVERY = 500;
  // What running jobs tell of themselves is no change of the fleet either; and that something is late, or waits too
  // long, comes with time alone.
  const MOVES_EVERY = 1000;
  const AGES_EVERY = 5000;
  // Once more after the last change, in case another process of the fleet answered before it had seen it.
  const ONCE_MORE = 1300;
  // A browser keeps six connections to one host for all its tabs: one that nobody looks at gives its own back.
  const LEAVES_AFTER = 5000;
  let state = "connecting";
  let isHeld = false;
  let isLoading = false;
  let isWanted = false;
  // Somebody acted while the page was asked for: the answer may tell of before, and take the form away that acts.
  let isOvertaken = false;
  // The last look was not answered, or refused: what is shown may be old, though the stream is open.
  let isFailing = false;
  let isFirst = true;
  let lookedAt = performance.now();
  let again = 0;
  let leaving = 0;
  let source = null;

  const page = () => document.getElementById("page");

  function show() {
    const shown = isHeld ? "held" : isFailing ? "lost" : state;
    const light = document.getElementById("live");
    const hold = document.getElementById("hold");
    if (light && light.dataset.state !== shown) {
      light.dataset.state = shown;
      light.textContent = WORDS[shown];
    }
    if (hold) {
      hold.textContent = isHeld ? "Go on" : "Hold";
      hold.setAttribute("aria-pressed", String(isHeld));
    }
    document.documentElement.dataset.held = String(isHeld);
  }

  // Nothing moves under the hands of somebody who types, chooses, copies or answers a question.
  function isInUse() {
    if (document.hidden || document.querySelector("dialog[open], form.htmx-request")) return true;
    const active = document.activeElement;
    if (active && page().contains(active) && active.matches("input:not([type=checkbox]), select, textarea")) return true;
    if (page().querySelector("input[name=job]:checked, #tick-fit:checked")) return true;
    const chosen = getSelection();
    return Boolean(chosen && !chosen.isCollapsed && page().contains(chosen.anchorNode));
  }

  function refresh() {
    if (isHeld || isLoading || !page().dataset.live || isInUse()) {
      isWanted = true;
      return;
    }
    isWanted = false;
    isLoading = true;
    isOvertaken = false;
    lookedAt = performance.now();
    htmx
      .ajax("GET", location.pathname + location.search, {
        source: page(), target: "#page", select: "#page", swap: "calm", selectOOB: COUNTED,
      })
      .finally(() => {
        isLoading = false;
        if (isWanted) setTimeout(refresh, 50);
      });
  }

  // While the stream is lost there is nobody to ask.
  function isDue() {
    if (!page().dataset.live || state !== "live") return false;
    const every = page().querySelector("progress, .k-running") ? MOVES_EVERY : AGES_EVERY;
    // The next tick would be too late.
    return performance.now() - lookedAt > every - LOOK_EVERY / 2;
  }

  function hear() {
    refresh();
    clearTimeout(again);
    again = setTimeout(refresh, ONCE_MORE);
  }

  function listen() {
    if (source || document.hidden || !page().dataset.live) return;
    const own = new EventSource(document.body.dataset.events);
    source = own;
    own.addEventListener("open", () => {
      state = "live";
      show();
    });
    own.addEventListener("reset", () => {
      // The first may tell what this page shows already, or what came while it was on its way.
      if (isFirst) refresh();
      else hear();
      isFirst = false;
    });
    own.addEventListener("update", hear);
    own.addEventListener("error", () => {
      if (own !== source) return;
      state = "lost";
      show();
      if (own.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(listen, 3000);
    });
  }

  function leave() {
    if (!source) return;
    source.close();
    source = null;
    state = "connecting";
    show();
  }

  // What somebody has typed and not sent.
  function isTyped(field) {
    if (field.tagName === "SELECT") return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.matches("input:not([type=checkbox]), textarea") && field.value !== field.defaultValue;
  }

  function keepsItself(old, fresh) {
    if (old.id === "live" || old.id === "hold") return false;
    if (old.dataset && "copy" in old.dataset) return false;
    if (old.id && old.id === fresh.id && isTyped(old)) return false;
    if (old.dataset && old.dataset.chart && fresh.dataset && fresh.dataset.chart) {
      drumlineCharts.update(old, fresh);
      return false;
    }
    return true;
  }

  htmx.defineExtension("calm", {
    handleSwap(style, target, fragment) {
      if (style !== "calm") return false;
      const followed = [...target.querySelectorAll("[data-follow]")].filter(
        (one) => one.scrollHeight - one.scrollTop - one.clientHeight < 24,
      );
      const shown = Idiomorph.morph(target, fragment.firstElementChild.cloneNode(true), {
        morphStyle: "outerHTML",
        callbacks: {
          beforeNodeMorphed: keepsItself,
          // What somebody has folded or unfolded stays so.
          beforeAttributeUpdated: (name, node) => !(node.tagName === "DETAILS" && name === "open"),
        },
      });
      for (const one of followed) one.scrollTop = one.scrollHeight;
      return [...shown];
    },
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("#hold")) return;
    isHeld = !isHeld;
    show();
    if (!isHeld) refresh();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) {
      leaving = setTimeout(leave, LEAVES_AFTER);
      return;
    }
    listen();
    if (isWanted) refresh();
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", listen);
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.requestConfig.verb === "post") isOvertaken = true;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt !== page()) return;
    if (isOvertaken || isHeld || isInUse()) {
      event.detail.shouldSwap = false;
      isWanted = true;
    } else if (event.detail.xhr.status === 404) {
      // What the page was about is gone, and the answer says so.
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.requestConfig.elt !== page()) return;
    isFailing = !event.detail.successful && event.detail.xhr.status !== 404;
    show();
  });
  document.addEventListener("htmx:afterSwap", () => {
    show();
    listen();
  });
  setInterval(() => {
    if (isWanted || page().dataset.live === "job" || isDue()) refresh();
  }, LOOK_EVERY);
  for (const one of document.querySelectorAll("[data-follow]")) one.scrollTop = one.scrollHeight;
  listen();
})();
