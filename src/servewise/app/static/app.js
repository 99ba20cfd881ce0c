"use strict";
// The form writes the address; the answer to the address is put in its place. All figures come from the server.

const TAB = sessionStorage.getItem("tab") || Math.random().toString(16).slice(2).padEnd(13, "0");
sessionStorage.setItem("tab", TAB);
const SOON_MS = { quick: 100, slow: 350 }; // after the last key
const LOOK_MS = 150; // between two looks at a run
const PNG_SCALE = 2;

const byId = (id) => document.getElementById(id);
const main = () => byId("main");
const form = () => document.querySelector("form");
let asked = 0; // the newest request: older ones that come back are dropped
let timer = 0;
let job = null;
let lastField = "";

function queryOf(element) {
  const query = new URLSearchParams();
  for (const input of element.querySelectorAll("[data-default]")) {
    const many = input.dataset.many;
    const value = many ? chosen(input) : input.type === "checkbox" ? (input.checked ? "1" : "") : input.value.trim();
    if (value !== input.dataset.default) query.set(many || input.name, value);
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

const chosen = (group) => [...group.querySelectorAll("input:checked")].map((box) => box.value).join(",");

function keepAddress(field) {
  const address = location.pathname + queryOf(form());
  if (address === location.pathname + location.search) return;
  if (field && field === lastField) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  lastField = field;
  keepTabs();
}

function keepTabs() { // values go along to the other views; what a view does not have, its server leaves out
  const query = new URLSearchParams(location.search);
  for (const link of document.querySelectorAll("[data-tab]")) {
    const there = new URLSearchParams();
    for (const name of (link.dataset.fields || "").split(" ")) if (query.has(name)) there.set(name, query.get(name));
    link.search = there.toString();
  }
}

async function refresh() {
  const mine = ++asked;
  if (job) await cancel(true);
  const view = location.pathname;
  if (main().dataset.slow) return run(mine, view);
  const wait = setTimeout(() => byId("answer").classList.add("stale"), 400);
  try {
    await putAnswer(mine, view);
  } finally {
    clearTimeout(wait);
  }
}

async function putAnswer(mine, view) {
  const reply = await ask(`${view}/answer${location.search}`);
  if (mine !== asked || !reply) return;
  if (!reply.ok) return complain(await reply.json());
  const text = await reply.text();
  if (mine !== asked) return;
  complain(null);
  byId("answer").innerHTML = text;
  byId("answer").classList.remove("stale");
  byId("told").textContent = document.querySelector("#answer .answer")?.textContent || "The answer is here.";
}

async function ask(url, options = {}) {
  try {
    return await fetch(url, { ...options, headers: { "x-tab": TAB } });
  } catch {
    complain({ field: "", line: "The page's server does not answer: was servewise app stopped?" });
    return null;
  }
}

async function run(mine, view) {
  const query = location.search;
  const reply = await ask(`${view}/job${query}`, { method: "POST" });
  if (mine !== asked || !reply) return;
  let found = await reply.json();
  if (!reply.ok) return complain(found);
  complain(null);
  job = found.job || null;
  const began = performance.now();
  while (found.state === "running" && mine === asked) {
    showProgress(found, performance.now() - began);
    await new Promise((done) => setTimeout(done, LOOK_MS));
    if (mine !== asked) return;
    const next = await ask(`/jobs/${job}`);
    if (!next) return hideProgress();
    found = next.ok ? await next.json() : { state: "failed", field: "", line: "The run is gone: was servewise app started anew?" };
  }
  if (mine !== asked) return;
  job = null;
  hideProgress();
  if (found.state === "failed") complain(found);
  if (found.state === "done") await putAnswer(mine, view);
}

function showProgress(found, passed) {
  const bar = byId("running-bar");
  byId("running").hidden = false;
  byId("answer").classList.add("stale");
  const left = found.done ? (passed / found.done) * (found.total - found.done) : null;
  const text = found.total ? `${found.done} of ${found.total}` : `Running, ${(passed / 1000).toFixed(1)} s`;
  byId("running-text").textContent = left === null ? text : `${text}, about ${(left / 1000).toFixed(left < 9500 ? 1 : 0)} s left`;
  if (found.total) [bar.max, bar.value] = [found.total, found.done];
  else bar.removeAttribute("value");
}

function hideProgress() {
  byId("running").hidden = true;
  byId("answer").classList.remove("stale");
}

async function cancel(quiet) {
  const key = job;
  job = null;
  if (!quiet) ++asked;
  hideProgress();
  if (key) await ask(`/jobs/${key}`, { method: "DELETE" });
  if (!quiet) complain({ field: "", line: "Cancelled. Change something, or press Run." });
}

function complain(mistake) {
  for (const line of document.querySelectorAll(".error")) line.textContent = "";
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  if (!mistake) return;
  byId("answer").classList.add("stale");
  const place = mistake.field && byId(`${mistake.field}-error`);
  (place || byId("page-error")).textContent = mistake.line;
  const input = place && byId(mistake.field);
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  for (let around = input.parentElement; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
}

async function upload(name, content, field) {
  const reply = await ask(`/uploads?name=${encodeURIComponent(name)}`, { method: "POST", body: content });
  if (!reply) return;
  const found = await reply.json();
  if (!reply.ok) return complain({ field, line: found.line });
  const place = byId(field);
  if (place.dataset.many) place.append(box(field, found.reference));
  else place.value = found.reference;
  for (const told of document.querySelectorAll(`[data-file-of="${field}"]`)) told.textContent = found.reference.split("/")[1];
  keepAddress(`${field}-file-${Date.now()}`);
  refresh();
}

function box(name, reference) { // one more file among several, taken
  const label = document.createElement("label");
  label.className = "box";
  const input = document.createElement("input");
  [input.type, input.name, input.value, input.checked] = ["checkbox", name, reference, true];
  label.append(input, ` ${reference.split("/")[1]}`);
  return label;
}

async function savePng(url, name) {
  const reply = await ask(url);
  if (!reply || !reply.ok) return;
  const source = URL.createObjectURL(new Blob([await reply.text()], { type: "image/svg+xml" }));
  const picture = new Image();
  picture.src = source;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.naturalWidth * PNG_SCALE, picture.naturalHeight * PNG_SCALE];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(source);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function copy(button) {
  const place = byId(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(place.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(place);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

async function showAddress() { // back or forward: the server draws the form and the answer of that address
  const mine = ++asked;
  if (job) await cancel(true);
  const reply = await ask(location.pathname + location.search);
  if (mine !== asked || !reply) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (!page.getElementById("main")) return location.reload();
  main().replaceWith(page.getElementById("main"));
  document.querySelector(".bar").replaceWith(page.querySelector(".bar"));
  document.title = page.title;
  lastField = "";
  arrive();
}

function arrive() { // a slow view whose answer is not here yet runs by itself, if it is one that does
  if (main().dataset.auto && main().dataset.slow && document.querySelector(".waiting")) refresh();
}

document.addEventListener("input", (event) => {
  const input = event.target;
  if (!input.form || !input.name) return;
  if (input.type === "range") input.parentElement.querySelector("output").textContent = input.value;
  const group = input.closest("[data-sets]");
  if (group) byId(group.dataset.sets).value = group.dataset.value;
  clearTimeout(timer);
  timer = setTimeout(() => {
    keepAddress(input.name);
    if (main().dataset.auto) refresh();
  }, main().dataset.slow ? SOON_MS.slow : SOON_MS.quick);
});

document.addEventListener("change", (event) => {
  const field = event.target.dataset.upload;
  if (!field || !event.target.files.length) return;
  const [file] = event.target.files;
  event.target.value = "";
  upload(file.name, file, field);
});

document.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  keepAddress("");
  refresh();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "cancel") cancel(false);
  if (button.dataset.png) savePng(button.dataset.png, button.dataset.name);
  if (button.dataset.copy) copy(button);
  if (button.dataset.paste) upload("pasted.json", byId(`paste-${button.dataset.paste}`).value, button.dataset.paste);
});

window.addEventListener("popstate", showAddress);
window.addEventListener("pageshow", (event) => { // kept by the browser while its run was ended
  if (event.persisted && main().dataset.auto && main().dataset.slow) refresh();
});
window.addEventListener("pagehide", () => {
  if (job) fetch(`/jobs/${job}`, { method: "DELETE", keepalive: true, headers: { "x-tab": TAB } });
});
arrive();
