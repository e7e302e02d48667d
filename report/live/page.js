// Keeps a page of the coordinator current: asks for its own address again, and replaces the
// sections that have changed. What a reader has opened, chosen, scrolled or selected stays. Nothing
// is made of text: every node comes from the document that the server sent.
"use strict";

const INTERVAL_MS = 5000;
const RETRY_MS = [5000, 10000, 20000, 30000];
const LIMIT_MS = 15000; // for a request
const AT_END_PX = 8;

const main = document.querySelector("main");
const state = document.getElementById("page-state");
const served = new Map(); // id of a section → its text as served, without what a reader opened
let entityTag = null;
let timer = 0;
let isAsking = false;
let failures = 0;
let failedSince = null; // Date of the first failure since the last answer
let problem = "";
let updatedAt = Date.now();
let isFinal = main.dataset.final === "true";
let hasEnded = false; // nothing is asked for any more
let heldSections = 0; // sections that are not replaced, because text in them is selected

const clock = (date) => `${date.toISOString().slice(11, 19)} UTC`; // as all times of the page

function showState() {
  const age = Math.max(0, Math.round((Date.now() - updatedAt) / 1000));
  let text = `updated ${age} s ago`;
  if (problem) text = `${problem} since ${clock(failedSince)}; the page shows what it was then`;
  else if (hasEnded) text = `the job has ended; updated last at ${clock(new Date(updatedAt))}`;
  else if (heldSections > 0) text += "; what has selected text is not updated";
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("stale", problem !== "");
  state.setAttribute("aria-live", problem ? "polite" : "off");
}

// Returns the elements of `section` that match, each with a key that its successor has too: links
// by their address, because rows move.
function keyed(section, selector) {
  return Array.from(section.querySelectorAll(selector), (element, index) => [
    element.id || element.getAttribute("href") || `number ${index}`,
    element,
  ]);
}

function isAtEnd(element) {
  return element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PX;
}

const FOCUSABLE = "a, summary, input, pre, [tabindex]";

// Returns what a reader has done to the section.
function readerState(section) {
  return {
    open: new Map(keyed(section, "details").map(([key, element]) => [key, element.open])),
    checked: new Map(keyed(section, "input").map(([key, element]) => [key, element.checked])),
    scrolled: new Map(
      keyed(section, ".wide, pre").map(([key, element]) => [
        key,
        { top: isAtEnd(element) ? Infinity : element.scrollTop, left: element.scrollLeft },
      ]),
    ),
    focused: keyed(section, FOCUSABLE).find(([, element]) => element === document.activeElement),
  };
}

// Brings the section, which is in the page, to that state.
function restore(section, { open, checked, scrolled, focused }) {
  for (const [key, element] of keyed(section, "details"))
    element.open = open.get(key) ?? element.open;
  for (const [key, element] of keyed(section, "input"))
    element.checked = checked.get(key) ?? element.checked;
  for (const [key, element] of keyed(section, ".wide, pre")) {
    const { top, left } = scrolled.get(key) ?? { top: 0, left: 0 };
    element.scrollLeft = left;
    // Only a log grows at its end; anything else that fits has its end in sight by chance.
    if (top !== Infinity) element.scrollTop = top;
    else if (element.matches("pre")) element.scrollTop = element.scrollHeight;
  }
  if (focused === undefined) return;
  const successor = keyed(section, FOCUSABLE).find(([key]) => key === focused[0]);
  if (successor !== undefined) successor[1].focus({ preventScroll: true });
}

function hasSelection(section) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(section, true);
}

// Brings <main> to the sections of `next`, in their order.
function adopt(next) {
  const sections = Array.from(next.children);
  const ids = new Set(sections.map((section) => section.id));
  heldSections = 0;
  for (const old of Array.from(main.children)) {
    if (ids.has(old.id)) continue;
    served.delete(old.id);
    old.remove();
  }
  let previous = null;
  for (const section of sections) {
    const text = section.outerHTML;
    let current = document.getElementById(section.id);
    if (current === null) {
      current = document.adoptNode(section);
      main.insertBefore(current, previous ? previous.nextSibling : main.firstChild);
      served.set(section.id, text);
    } else if (served.get(section.id) !== text) {
      if (hasSelection(current)) {
        heldSections += 1;
      } else {
        const before = readerState(current);
        current.replaceWith(document.adoptNode(section));
        restore(section, before);
        current = section;
        served.set(section.id, text);
      }
    }
    previous = current;
  }
}

const REFUSALS = {
  401: "the coordinator does not know these credentials (401)",
  403: "the coordinator refuses this page to you (403)",
  404: "the coordinator has no such page any more (404)",
};

// Returns why the answer is of no use; empty if it is.
function refusalOf(response) {
  if (response.status === 304) return "";
  if (!response.ok)
    return REFUSALS[response.status] ?? `the coordinator answers ${response.status}`;
  const type = response.headers.get("content-type") ?? "";
  return type.startsWith("text/html") ? "" : "the coordinator answers with no page";
}

async function ask(signal) {
  const headers = entityTag === null ? {} : { "If-None-Match": entityTag };
  const url = location.href.split("#")[0];
  const response = await fetch(url, { cache: "no-store", redirect: "error", headers, signal });
  const refusal = refusalOf(response);
  if (refusal) {
    // Every further request would ask the reader for a password.
    hasEnded = response.status === 401;
    return refusal;
  }
  if (response.status === 304) {
    hasEnded = isFinal;
    return "";
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const next = page.querySelector("main");
  if (next === null) return "the coordinator answers with no page";
  adopt(next);
  document.title = page.title;
  // A section that is held must be sent again.
  entityTag = heldSections > 0 ? null : response.headers.get("etag");
  const wasFinal = isFinal;
  isFinal = next.dataset.final === "true";
  hasEnded = wasFinal && isFinal && heldSections === 0;
  return "";
}

async function poll() {
  if (isAsking || hasEnded || document.hidden) return;
  isAsking = true;
  clearTimeout(timer);
  const abort = new AbortController();
  const limit = setTimeout(() => abort.abort(), LIMIT_MS);
  try {
    problem = await ask(abort.signal);
  } catch {
    problem = "the coordinator does not answer";
  }
  clearTimeout(limit);
  isAsking = false;
  if (problem === "") {
    updatedAt = Date.now();
    failures = 0;
    failedSince = null;
  } else {
    failedSince ??= new Date();
    failures += 1;
  }
  const wait = failures === 0 ? INTERVAL_MS : RETRY_MS[Math.min(failures, RETRY_MS.length) - 1];
  if (!hasEnded) timer = setTimeout(poll, wait);
  showState();
}

for (const section of main.children) served.set(section.id, section.outerHTML);
for (const log of document.querySelectorAll("pre.log")) log.scrollTop = log.scrollHeight;
document.addEventListener("visibilitychange", poll);
timer = setTimeout(poll, INTERVAL_MS);
setInterval(showState, 1000);
showState();
