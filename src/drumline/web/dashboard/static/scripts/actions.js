// Questions in a dialog, sentences about what was done, and the ticks before many jobs.
"use strict";
(() => {
  const SHOWN_FOR = 8000;
  const dialog = document.getElementById("dialog");

  function ask(address) {
    htmx.ajax("GET", address, { source: dialog, target: "#dialog", select: "#confirm", swap: "innerHTML" });
  }

  function toast(words) {
    const one = document.createElement("div");
    one.className = "toast bad";
    one.textContent = words;
    document.getElementById("toasts").replaceChildren(one);
    expire();
  }

  function expire() {
    for (const one of document.querySelectorAll(".toast:not([data-expires])")) {
      one.dataset.expires = "true";
      setTimeout(() => one.remove(), SHOWN_FOR);
    }
  }

  function refusal(text) {
    try {
      return JSON.parse(text).error;
    } catch {
      const said = new DOMParser().parseFromString(text, "text/html").querySelector("#page p");
      return said ? said.textContent : "That did not work.";
    }
  }

  // An answer to a question; not a look at the page, which may have been under way when the question came up.
  function isDeed(event) {
    return Boolean(event.detail.requestConfig && event.detail.requestConfig.verb === "post");
  }

  function countTicks() {
    const ticked = document.getElementById("ticked");
    if (!ticked) return;
    const number = document.querySelectorAll("input[name=job]:checked").length;
    const fits = document.getElementById("tick-fit");
    ticked.textContent = fits && fits.checked ? "" : number ? `${number} chosen, the page holds still` : "";
  }

  function copy(button) {
    const text = button.parentElement.querySelector("pre").textContent;
    if (!navigator.clipboard) {
      button.textContent = "Not allowed here";
      return;
    }
    navigator.clipboard.writeText(text).then(
      () => (button.textContent = "Copied"),
      () => (button.textContent = "Not allowed here"),
    );
  }

  document.addEventListener("submit", (event) => {
    if (!event.submitter || !("ask" in event.submitter.dataset)) return;
    event.preventDefault();
    const form = event.target;
    const fits = form.querySelector("#tick-fit");
    const given = [...new FormData(form)].filter(([name]) => name !== "job" || !(fits && fits.checked));
    ask(`${event.submitter.formAction.split("?")[0]}?${new URLSearchParams(given)}`);
  });

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.closest("[data-close]")) target.closest(".toast").remove();
    if (target.closest("[data-copy]")) copy(target.closest("[data-copy]"));
    if (target.closest("[data-dismiss]") && dialog.contains(target)) {
      event.preventDefault();
      dialog.close();
    }
    if (target === dialog) dialog.close();
  });

  // A link that looks like a button is pressed like one.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("a[role=button]")) return;
    event.preventDefault();
    event.target.click();
  });

  document.addEventListener("change", (event) => {
    if (event.target.id === "tick-all") {
      for (const box of document.querySelectorAll("input[name=job]")) box.checked = event.target.checked;
    }
    countTicks();
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    expire();
    countTicks();
    if (event.detail.target === dialog && dialog.firstElementChild && !dialog.open) {
      dialog.showModal();
      const first = dialog.querySelector("[autofocus]");
      if (first) first.focus();
    } else if (isDeed(event) && dialog.open) {
      dialog.close();
    }
  });
  document.addEventListener("htmx:responseError", (event) => {
    // A look at the page that failed is no answer to anybody.
    if (event.detail.requestConfig.elt.id === "page") return;
    dialog.close();
    toast(refusal(event.detail.xhr.responseText));
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (isDeed(event)) toast("The server does not answer. Nothing was done, or it is not known.");
  });
  expire();
})();
