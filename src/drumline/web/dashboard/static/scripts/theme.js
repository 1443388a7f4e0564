// Light or dark: the system's choice, until somebody switches. The server knows the choice by a cookie.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest("#theme")) return;
    root.dataset.theme = isDark() ? "light" : "dark";
    document.cookie = `drumline_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
    document.dispatchEvent(new Event("drumline:theme"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    document.dispatchEvent(new Event("drumline:theme"));
  });
})();
