// Parts of a page that change: fetched again with the page itself, as often as somebody looks at it.
"use strict";

const PAUSE = 2000;
const LONGEST_PAUSE = 30000;

// Calls `look` now and then while the tab can be seen, more rarely while it fails; ends when it answers false.
function keepLooking(look) {
  let pause = PAUSE;
  let timer = 0;
  let ended = false;
  async function turn() {
    timer = 0;
    try {
      ended = (await look()) === false;
      pause = PAUSE;
    } catch {
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
    schedule();
  }
  function schedule() {
    if (!ended && !timer && !document.hidden) timer = setTimeout(turn, pause);
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      timer = 0;
    } else {
      schedule();
    }
  });
  turn();
}

// Whoever reads or is about to press something in a part keeps it as it is.
function isInUse(part) {
  return part.contains(document.activeElement) || part.querySelector("details[open]") !== null;
}

async function refresh() {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (parts.length === 0) return false;
  const answer = await fetch(location.href);
  if (answer.redirected) location.reload();
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const other = fresh.getElementById(part.id);
    if (other && !isInUse(part)) part.replaceWith(other);
  }
  return true;
}

keepLooking(() => refresh());
