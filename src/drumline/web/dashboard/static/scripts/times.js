// "in 4 s" becomes "in 3 s" by itself, by the store's clock, in the words that the server uses.
"use strict";
(() => {
  let ahead = 0;
  let learnt = "";

  // A page that holds still tells the time at which it was made, and not the present.
  function learnTime() {
    const page = document.getElementById("page");
    if (!page || !page.dataset.now || page.dataset.now === learnt) return;
    learnt = page.dataset.now;
    ahead = Date.parse(learnt) - Date.now();
  }

  function short(number) {
    return number < 10 ? number.toFixed(1).replace(/\.0$/, "") : number.toFixed(0);
  }

  function span(seconds) {
    if (seconds < 99.5) return `${seconds.toFixed(0)} s`;
    if (seconds < 6000) return `${(seconds / 60).toFixed(0)} min`;
    if (seconds < 172800) return `${short(seconds / 3600)} h`;
    return `${(seconds / 86400).toFixed(0)} days`;
  }

  function relative(instant) {
    const seconds = (Date.parse(instant) - Date.now() - ahead) / 1000;
    if (Math.abs(seconds) < 0.5) return "now";
    return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
  }

  function tick() {
    for (const time of document.querySelectorAll("time[data-rel]")) {
      const words = relative(time.dateTime);
      if (time.textContent !== words) time.textContent = words;
    }
  }

  learnTime();
  document.addEventListener("htmx:afterSwap", learnTime);
  setInterval(() => {
    const isHeld = document.documentElement.dataset.held === "true";
    if (!document.hidden && !isHeld) tick();
  }, 1000);
})();
