// The dashboard of artoo. Everything that comes from the server is put in as text: no string ever becomes markup here, which the browser
// enforces (require-trusted-types-for). The one exception is a report, which may not run anything in its frame.
"use strict";

const LOOK = 1000, AWAY = 5000, SHOWN = 200, SURE = 4000, SETTLED = 700;
const KEY = "artoo-token";
const SECTIONS = [["running", "Running"], ["past", "Past"], ["audit", "Audit"], ["memory", "Memory"], ["controller", "Controller"]];
const frames = window.trustedTypes
  ? window.trustedTypes.createPolicy("report", { createHTML: text => text })
  : { createHTML: text => text };

const $ = id => document.getElementById(id);
const now = { live: { number: 0, value: null }, past: { number: 0, value: null } };
const asked = new Map();
const stops = new Map();
let token = "", shownAs = null, timer = 0, drawn = 0;

// ---- Elements

function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false).map(child =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return element;
}
const figure = (value, name, attributes) => el("div", { class: "figure" }, el("b", attributes, value), el("span", {}, name));
const soft = (...children) => el("p", { class: "soft" }, ...children);
const card = (...children) => el("section", { class: "card" }, ...children);
const table = (heads, rows) => el("div", { class: "scroll" }, el("table", {},
  el("thead", {}, el("tr", {}, heads.map(([name, kind]) => el("th", { class: kind }, name)))),
  el("tbody", {}, rows.map(cells => el("tr", {}, cells.map((cell, at) => el("td", { class: heads[at][1] }, cell)))))));

// ---- Words and numbers

const count = n => Number(n || 0).toLocaleString("en").replaceAll(",", "\u202f");
const words = text => String(text ?? "–").replaceAll("_", " ");
const two = n => typeof n === "number" ? n.toFixed(2) : "–";
const signed = n => typeof n === "number" ? (n >= 0 ? "+" : "−") + Math.abs(n).toFixed(2) : "–";
const money = n => Number(n || 0).toFixed(4);
const plural = (n, one, more) => `${count(n)} ${n === 1 ? one : more}`;
function lasted(ms) {
  if (typeof ms !== "number") return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60000);
  return minutes < 60 ? `${minutes} min ${Math.floor(ms / 1000) % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
function moment(text) {
  const at = text ? new Date(text) : null;
  if (!at || isNaN(at)) return "–";
  const pad = n => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}`;
}
const ENDINGS = { accept: "good", success: "warn", abandon: "bad" };
const LEVELS = [["T", "the laws and the persona, in the prompts"], ["C", "rules and constraints"], ["K", "knowledge"], ["M", "raw events"]];

// ---- The server

class Refused extends Error {}

async function ask(path, body) {
  const answer = await fetch(path, {
    method: body ? "POST" : "GET", cache: "no-store", credentials: "omit", redirect: "error",
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  });
  if (answer.ok) return answer;
  const text = await answer.text();
  let why = text;
  try { why = JSON.parse(text).error; } catch { /* it is no JSON: the text itself */ }
  throw answer.status === 401 ? new Refused(why) : new Error(why || `the server says ${answer.status}`);
}
const told = async path => (await ask(path)).json();

/// Brings one of the two documents up to date; whether it changed.
async function renew(part) {
  const known = now[part];
  const came = await told(`/api/${part}/${known.number}`);
  if (!("value" in came)) return false;
  now[part] = came;
  return true;
}

async function poll() {
  clearTimeout(timer);
  try {
    let changed = await renew("live");
    if (now.live.value && now.live.value.past !== now.past.number) changed = await renew("past") || changed;
    state("live", "live");
    if (changed) draw();
  } catch (error) {
    if (error instanceof Refused) return closed(error.message);
    state("lost", "no connection");
  }
  // Another look may have begun meanwhile; one goes on.
  clearTimeout(timer);
  timer = setTimeout(poll, document.hidden ? AWAY : LOOK);
}

function state(kind, text) {
  const shown = $("state");
  if (shown.textContent !== text) shown.textContent = text;
  shown.className = kind;
}

// ---- The token

/// Takes the token out of the address bar, where others would see it.
function takeToken() {
  const given = /^#([0-9a-f]{48})$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, given[1]);
    history.replaceState(null, "", "#running");
  }
  token = sessionStorage.getItem(KEY) || "";
}

function closed(why) {
  sessionStorage.removeItem(KEY);
  state("lost", "closed");
  $("gate").hidden = false;
  $("refused").textContent = token ? why : "";
  $("view").replaceChildren();
  $("questions").replaceChildren();
  asked.clear();
}

function opened() {
  $("gate").hidden = true;
  now.live = { number: 0, value: null };
  now.past = { number: 0, value: null };
  shownAs = null;
  poll().then(draw);
}

// ---- What is to be seen

function place() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  return { name: name || "running", rest: rest.map(part => { try { return decodeURIComponent(part); } catch { return part; } }) };
}

function tabs() {
  const { name } = place();
  const here = name === "report" ? "past" : name;
  const running = now.live.value ? now.live.value.tasks.length : 0;
  $("tabs").replaceChildren(...SECTIONS.map(([key, title]) =>
    el("a", { href: `#${key}`, "aria-current": key === here ? "page" : null }, title, key === "running" && running ? ` (${running})` : "")));
}

/// Draws the section that is open. Those that follow the tasks are drawn again with every change; the others when they are opened.
function draw() {
  if (!$("gate").hidden || !now.live.value) return;
  still(drawAll);
}

function drawAll() {
  tabs();
  questions();
  const at = place(), key = location.hash;
  const view = $("view");
  const again = shownAs === key;
  shownAs = key;
  if (at.name === "past") return again ? pastList() : past(view);
  if (at.name === "report") return again ? reportChanged(at.rest[0]) : report(view, at.rest[0]);
  if (at.name === "audit") return again || lookInto(view, at.rest[0] === "page" ? auditPage : audit);
  if (at.name === "memory") return again || lookInto(view, memory);
  if (at.name === "controller") return again || lookInto(view, controller);
  running(view);
}

/// A section that is asked for when it is opened.
async function lookInto(view, look) {
  const mine = ++drawn;
  view.replaceChildren(soft("Looking …"));
  const again = el("button", { type: "button", on: { click: () => lookInto(view, look) } }, "Look again");
  try {
    const parts = await look();
    if (mine === drawn) view.replaceChildren(el("p", { class: "row" }, again), ...parts.flat(Infinity).filter(Boolean));
  } catch (error) {
    if (error instanceof Refused) return closed(error.message);
    if (mine === drawn) view.replaceChildren(el("p", { class: "row" }, again), el("p", { class: "bad" }, error.message));
  }
}

// ---- Questions

/// Nobody answers what they could not read: what this moves on the screen takes no click until it has stood there for a moment.
function still(act) {
  const at = card => card.element.getBoundingClientRect().top;
  const before = new Map([...asked.values()].map(card => [card, at(card)]));
  act();
  for (const card of asked.values()) if (before.get(card) !== at(card)) card.rest();
}

/// A question stays the same element until it is gone, so that what is being typed stays.
function questions() {
  const open = now.live.value.questions;
  for (const [id, { element }] of asked) {
    if (open.some(question => question.id === id)) continue;
    element.remove();
    asked.delete(id);
  }
  for (const question of open) {
    if (asked.has(question.id)) continue;
    const card = questionCard(question);
    asked.set(question.id, card);
    $("questions").append(card.element);
  }
  const waiting = open.length + now.live.value.tasks.reduce((sum, task) => sum + task.asked_elsewhere.length, 0);
  document.title = waiting ? `(${waiting}) artoo` : "artoo";
}

/// The card of a question, and how it is told to rest.
function questionCard(question) {
  const trouble = el("p", { class: "bad", role: "alert" });
  const buttons = [];
  let given = false, resting = 0;
  const enable = () => buttons.forEach(button => { button.disabled = given || resting > 0; });
  const rest = () => {
    resting += 1;
    enable();
    setTimeout(() => { resting -= 1; enable(); }, SETTLED);
  };
  const say = text => still(() => { trouble.textContent = text; });
  const give = async body => {
    if (given || resting) return;
    given = true;
    enable();
    say("");
    try {
      await ask("/api/answer", { id: question.id, ...body });
      await poll();
    } catch (error) {
      if (error instanceof Refused) return closed(error.message);
      say(error.message);
      given = false;
      enable();
    }
  };
  // The second half of a double click was meant for what stood there before.
  const once = act => event => event.detail > 1 ? event.preventDefault() : act();
  const button = (text, kind, body) => {
    const made = el("button", { type: "button", class: kind, on: { click: once(() => give(body)) } }, text);
    buttons.push(made);
    return made;
  };
  let answers;
  if (question.kind === "confirmation") {
    answers = el("div", { class: "row" }, button("Yes, this once", "", { answer: "yes" }), button("No", "", { answer: "no" }),
      button("Always in this task", "", { answer: "always" }));
  } else {
    const input = el("input", { class: "wide", "aria-label": "Answer", maxlength: "16000" });
    const send = el("button", { class: "yes", on: { click: once(() => {}) } }, "Answer");
    buttons.push(send);
    answers = el("div", {}, el("form", { on: { submit: event => { event.preventDefault(); give({ text: input.value }); } } }, input, send),
      button("As you think best", "", { answer: "no" }));
  }
  const element = el("section", { class: "card question" },
    el("h2", {}, question.kind === "confirmation" ? "May this be done?" : "artoo asks"),
    soft(el("code", {}, question.task)), el("pre", {}, question.text), answers, trouble);
  return { element, rest };
}

// ---- Running

const MARKS = { failed: ["✗", "bad"], running: ["●", "running"], waiting: ["○", "soft"], not_run: ["–", "soft"], matched: ["✓", "good"], carried: ["↷", "good"] };

function running(view) {
  const live = now.live.value;
  const parts = [];
  if (live.trouble) parts.push(el("p", { class: "bad" }, live.trouble));
  if (!live.tasks.length) {
    const holder = live.holder;
    const who = !holder ? "No artoo works with it at the moment."
      : holder.is_this ? "This process takes tasks, and none runs."
      : `Process ${holder.pid} has held it since ${moment(holder.since)}, and runs no task.`;
    parts.push(card(el("h2", {}, "Nothing runs"), soft("Tasks of every artoo with the data folder ", el("code", {}, live.data), " appear here as they begin. ", who)));
  }
  parts.push(...live.tasks.map(runningCard));
  if (now.past.value && now.past.value.tasks.length) {
    parts.push(card(el("h2", {}, "Last ended"), el("ul", { class: "list" }, now.past.value.tasks.slice(0, 5).map(item)),
      el("p", {}, el("a", { href: "#past" }, "all that ran"))));
  }
  for (const task of stops.keys()) if (!live.tasks.some(running => running.task === task)) stops.delete(task);
  const focused = document.activeElement;
  view.replaceChildren(...parts);
  if (focused !== document.activeElement && view.contains(focused)) focused.focus({ preventScroll: true });
  tick();
}

function runningCard(task) {
  return card(
    el("div", { class: "row" }, el("h2", { class: "grow" }, task.input || task.task), stopping(task)),
    task.intent ? soft(task.intent) : null,
    el("div", { class: "figures" },
      figure("–", task.clock && "stands_at_ms" in task.clock ? "time, stopped while it waits for you" : "time",
        { "data-since": task.clock && task.clock.since, "data-stands": task.clock && task.clock.stands_at_ms }),
      figure(task.round || "–", "plan"), figure(count(task.calls), "model calls"), figure(count(task.tokens), "tokens"), figure(money(task.cost), "cost"),
      figure(task.asking.join(", ") || "–", "asks a model")),
    task.asked_elsewhere.map(text => [el("p", { class: "warn" }, "It waits for an answer on its own terminal:"), el("pre", {}, text)]),
    plan(task), signals(task),
    soft(el("code", {}, task.task), " · ", el("a", { href: `#report/${encodeURIComponent(task.task)}` }, "report so far")));
}

function plan(task) {
  if (!task.steps.length) return soft(task.round ? "The next plan is being made." : "There is no plan yet.");
  const groups = new Map();
  for (const step of task.steps) groups.set(step.group, [...(groups.get(step.group) || []), step]);
  return [el("h3", {}, `Plan ${task.round}`), [...groups].map(([group, steps]) => [
    group === 0 ? el("div", { class: "group" }, "taken over") : groups.size > 1 || steps.length > 1
      ? el("div", { class: "group" }, `${group}.${steps.length > 1 ? " at the same time" : ""}`) : null,
    el("ul", { class: "steps" }, steps.map(stepRow))]),
  task.left_out ? soft(`and ${task.left_out} more`) : null];
}

function stepRow(step) {
  const [mark, kind] = MARKS[step.state] || ["?", "soft"];
  const criteria = step.criteria.map(criterion => {
    const [mark, kind] = criterion.verdict === "pass" ? ["✓", "good"] : criterion.verdict === "fail" ? ["✗", "bad"] : ["·", "soft"];
    return el("li", {}, el("span", { class: `mark ${kind}` }, mark), criterion.text);
  });
  return el("li", {}, el("span", { class: `mark ${kind}`, title: words(step.state) }, mark), el("span", { class: "text" }, step.intent),
    el("span", { class: "side" }, step.attempt > 1 ? `attempt ${step.attempt}` : words(step.state)),
    el("ul", {}, criteria, step.left_out ? el("li", {}, `and ${step.left_out} more`) : null, step.trouble ? el("li", { class: "bad" }, step.trouble) : null));
}

function signals(task) {
  if (!task.rounds.length) return null;
  const last = task.rounds[task.rounds.length - 1];
  return [el("h3", {}, "How each round was judged"),
    table([["plan", "n"], ["D", "n"], ["P", "n"], ["Ω", "n"], ["L", "n"], ["∇L", "n"], ["directive", "t"], ["driven by", "w"]],
      task.rounds.map(round => [round.round, two(round.loss.D), two(round.loss.P), two(round.loss.Omega), two(round.loss.L), signed(round.grad_l),
        `${words(round.directive)} (${words(round.urgency)})`, round.criterion])),
    last.rationale ? soft(last.rationale) : null];
}

/// How to stop a task. Its button stays the same element while the task runs, so that it keeps the focus, and what was answered stays beside it.
function stopping(task) {
  if (task.abort.how === "terminal") {
    return el("span", { class: "soft side" }, task.abort.pid ? `to stop it: Ctrl+C where process ${task.abort.pid} runs` : "to stop it: Ctrl+C where it runs");
  }
  if (!stops.has(task.task)) stops.set(task.task, stopOf(task.task));
  const { element, button } = stops.get(task.task);
  if (task.abort.how === "signal") button.title = `sends Ctrl+C to process ${task.abort.pid}`;
  return element;
}

/// Stopping takes two presses, of which the second one must come soon, but not as the second half of a double click.
function stopOf(task) {
  let asked = 0, given = false;
  const said = el("span", { class: "soft side", role: "status" });
  const button = el("button", { type: "button", class: "stop" }, "Stop");
  const isSure = () => asked + SURE > Date.now();
  const show = () => {
    button.className = isSure() ? "stop sure" : "stop";
    button.textContent = isSure() ? "Really stop it?" : "Stop";
  };
  button.addEventListener("click", async event => {
    if (event.detail > 1 || given) return;
    if (!isSure()) {
      asked = Date.now();
      setTimeout(show, SURE + 50);
      return show();
    }
    if (asked + SETTLED > Date.now()) return;
    asked = 0;
    given = true;
    show();
    try {
      said.textContent = (await (await ask("/api/abort", { task })).json()).done;
    } catch (error) {
      if (error instanceof Refused) return closed(error.message);
      said.textContent = error.message;
    }
    given = false;
    poll();
  });
  return { element: el("span", { class: "row" }, said, button), button };
}

/// Clocks go on between two answers.
function tick() {
  for (const element of document.querySelectorAll("[data-since],[data-stands]")) {
    const { since, stands } = element.dataset;
    element.textContent = lasted(stands !== undefined ? Number(stands) : Date.now() - new Date(since).getTime());
  }
}

// ---- Past

function item(task) {
  const ending = task.directive ? [words(task.directive), ENDINGS[task.directive]] : [task.state, task.state === "damaged" ? "bad" : "warn"];
  const under = [moment(task.started_at), task.cause ? words(task.cause) : null, task.replans ? plural(task.replans, "replan", "replans") : null,
    plural(task.calls, "model call", "model calls"), `${count(task.tokens)} tokens`, task.cost ? `cost ${money(task.cost)}` : null, task.task];
  return el("li", {}, el("a", { class: "item", href: `#report/${encodeURIComponent(task.task)}` }, el("b", {}, task.input || task.intent || task.task),
    el("span", { class: "side" }, el("span", { class: `badge ${ending[1]}` }, ending[0]), ` ${lasted(task.elapsed_ms)}`),
    task.summary || task.damage ? el("span", { class: task.damage ? "under clamp bad" : "under clamp" }, task.damage || task.summary) : null,
    el("span", { class: "under" }, under.filter(Boolean).join(" · "))));
}

function past(view) {
  view.replaceChildren(el("div", { class: "row card" },
    el("input", { id: "filter", class: "wide", type: "search", placeholder: "words of a task, its result or its id", "aria-label": "Filter", on: { input: pastList } }),
    el("select", { id: "kind", "aria-label": "Which", on: { change: pastList } },
      [["", "all"], ["accept", "accepted"], ["success", "within the threshold"], ["abandon", "abandoned"], ["interrupted", "interrupted"], ["damaged", "damaged"]]
        .map(([value, name]) => el("option", { value }, name)))), el("section", { class: "card", id: "list" }));
  pastList();
}

function pastList() {
  if (!$("list") || !now.past.value) return;
  const { tasks, behind, left_out: left } = now.past.value;
  const wanted = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kind = $("kind").value;
  const fits = task => (!kind || task.directive === kind || task.state === kind)
    && wanted.every(word => [task.input, task.intent, task.summary, task.task].some(text => text && text.toLowerCase().includes(word)));
  const found = tasks.filter(fits);
  $("list").replaceChildren(...[
    soft(plural(found.length, "task", "tasks"), found.length < tasks.length ? ` of ${count(tasks.length)}` : ""),
    behind ? soft(`${plural(behind, "journal is", "journals are")} still being read.`) : null,
    el("ul", { class: "list" }, found.slice(0, SHOWN).map(item)),
    found.length > SHOWN ? soft(`and ${count(found.length - SHOWN)} more: say more of what you look for`) : null,
    left ? soft(`${plural(left, "older journal is", "older journals are")} not shown: artoo tasks list`) : null].filter(Boolean));
}

// ---- Reports

let reported = "";

async function report(view, task) {
  const mine = ++drawn;
  const frame = el("iframe", { title: "Report", sandbox: "allow-same-origin", id: "frame" });
  view.replaceChildren(el("p", {}, el("a", { href: "#past" }, "← all that ran")), el("p", { id: "damage", class: "bad" }), frame);
  reported = stamp(task);
  try {
    const html = await (await ask(`/api/report/${encodeURIComponent(task)}`)).text();
    if (mine === drawn) fill(frame, html);
  } catch (error) {
    if (error instanceof Refused) return closed(error.message);
    if (mine === drawn) view.replaceChildren(el("p", {}, el("a", { href: "#past" }, "← all that ran")), el("p", { class: "bad" }, error.message));
  }
  damage(task);
}

const known = task => [...(now.live.value ? now.live.value.tasks : []), ...(now.past.value ? now.past.value.tasks : [])].find(one => one.task === task);
const stamp = task => { const one = known(task); return one ? `${one.last_at} ${one.state}` : ""; };

function damage(task) {
  const one = known(task);
  if ($("damage")) $("damage").textContent = one && one.damage ? `Only the beginning can be read: ${one.damage}` : "";
}

/// The report of a task that runs is made again when something has happened; what was unfolded stays so.
async function reportChanged(task) {
  const frame = $("frame");
  if (!frame || stamp(task) === reported) return;
  reported = stamp(task);
  const mine = drawn;
  try {
    const html = await (await ask(`/api/report/${encodeURIComponent(task)}`)).text();
    if (mine !== drawn || frame !== $("frame")) return;
    const open = new Set([...frame.contentDocument.querySelectorAll("details")].flatMap((details, at) => details.open ? [at] : []));
    fill(frame, html, open);
    damage(task);
  } catch (error) {
    if (error instanceof Refused) return closed(error.message);
    // It may have been the last change.
    reported = "";
    setTimeout(() => { if (frame === $("frame")) reportChanged(task); }, AWAY);
  }
}

/// The frame may not run scripts; it is as high as what is in it.
function fill(frame, html, open) {
  frame.addEventListener("load", () => {
    const inside = frame.contentDocument;
    if (open) inside.querySelectorAll("details").forEach((details, at) => { details.open = open.has(at); });
    const fit = () => { frame.style.height = `${inside.body.offsetHeight}px`; };
    new ResizeObserver(fit).observe(inside.body);
    fit();
  }, { once: true });
  frame.srcdoc = frames.createHTML(html);
}

// ---- Audit

async function audit() {
  const { report, totals, findings, records } = await told("/api/audit");
  const list = (title, entries) => entries.length ? [el("h3", {}, title), el("ul", {}, entries.slice(-100).map(entry => el("li", {}, entry)))] : null;
  const rate = rate => `${count(rate.bad)} of ${count(rate.of)}`;
  return [card(el("h2", {}, "What the auditor saw"), soft(`${moment(report.window_start)} to ${moment(report.window_end)} · `, el("a", { href: "#audit/page" }, "with charts")),
    el("div", { class: "figures" }, figure(count(report.tasks_observed), "tasks"), figure(count(report.total_corrections), "corrections"),
      figure(count(report.total_replans), "replans"), figure(count(totals.input_tokens + totals.output_tokens), "tokens"), figure(money(totals.cost), "cost"),
      figure(count(Object.values(findings).reduce((a, b) => a + b, 0)), "findings"))),
  card(el("h2", {}, "In numbers"), table([["what", "w"], ["count", "n"]], [
    ["ended: accepted", count(totals.accepted)], ["ended: within the threshold", count(totals.succeeded)], ["ended: abandoned", count(totals.abandoned)],
    ["attempts that failed", rate(totals.attempts)], ["attempts that were corrected", rate(totals.judged)], ["rounds that were sent back", rate(totals.rounds)],
    ["tool calls that failed", rate(totals.tool_calls)], ["model calls without an answer", rate(totals.model_calls)],
    ["failed attempts", count(report.tool_health.execution_failures)], ["retries because of the environment", count(report.tool_health.environmental_retries)],
    ["retries because of the approach", count(report.tool_health.logical_retries)]])),
  card(el("h2", {}, "What should not be"),
    Object.keys(findings).length ? table([["detector", "w"], ["times", "n"]], Object.entries(findings).map(([name, n]) => [words(name), count(n)])) : soft("Nothing was found."),
    list("Boundary violations", report.boundary_violations), list("Drift", report.drift_alerts), list("Anomalies", report.anomalies)),
  records.length ? card(el("h2", {}, "Latest findings, gaps and notes"), el("pre", {}, records.join("\n"))) : null,
  report.gap_trends.length ? card(el("h2", {}, "Trends"), table([["task", "w"], ["gap", ""]],
    report.gap_trends.slice(-20).reverse().map(one => [el("a", { href: `#report/${encodeURIComponent(one.task_id)}` }, one.task_id), words(one.trend)]))) : null];
}

async function auditPage() {
  const html = await (await ask("/api/audit/page")).text();
  const frame = el("iframe", { title: "Audit", sandbox: "allow-same-origin" });
  fill(frame, html);
  return [el("p", {}, el("a", { href: "#audit" }, "← in numbers")), frame];
}

// ---- Memory

let picture = "";

async function memory() {
  const seen = await told("/api/memory");
  const tier = ([level, meaning]) => el("div", { class: "tier" }, el("b", {}, level === "T" ? "T" : `${level} ${count(seen[level])}`), el("span", {}, meaning));
  const group = el("section", { class: "card", hidden: true });
  const filter = el("input", { class: "wide", type: "search", placeholder: "words of a kind of task or an entity", "aria-label": "Filter" });
  const rows = el("div", {});
  const list = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = seen.groups.filter(one => wanted.every(word => `${one.space} ${one.entity}`.toLowerCase().includes(word)));
    rows.replaceChildren(table([["group", "w"], ["M", "n"], ["K", "n"], ["C", "n"], ["attention", "n"], ["decision", "n"], ["advice", ""]],
      found.slice(0, SHOWN).map(one => [el("a", { href: "#memory", on: { click: event => { event.preventDefault(); memoryGroup(group, one); } } }, `${one.space} · ${one.entity}`),
        one.M, one.K, one.C, two(one.attention), signed(one.decision), words(one.action)])));
  };
  filter.addEventListener("input", list);
  list();
  return [seen.damage.map(text => el("p", { class: "bad" }, text)),
    card(el("h2", {}, "The pyramid"), el("div", { class: "pyramid" }, LEVELS.map(tier)), seen.newest ? soft(`newest ${moment(seen.newest)}`) : soft("Nothing is remembered yet.")),
    group,
    seen.groups.length ? card(el("h2", {}, "Groups"), el("form", { on: { submit: event => event.preventDefault() } }, filter), rows,
      seen.groups_in_all > seen.groups.length ? soft(`and ${count(seen.groups_in_all - seen.groups.length)} older groups`) : null) : null];
}

async function memoryGroup(place, group) {
  place.hidden = false;
  place.replaceChildren(soft("Looking …"));
  place.scrollIntoView({ block: "nearest" });
  try {
    const seen = await told(`/api/memory/${encodeURIComponent(group.space)}/${encodeURIComponent(group.entity)}`);
    URL.revokeObjectURL(picture);
    picture = URL.createObjectURL(new Blob([seen.svg], { type: "image/svg+xml" }));
    place.replaceChildren(el("h2", {}, `${group.space} · ${group.entity}`),
      soft(`attention ${two(seen.attention)}, decision ${signed(seen.decision)}: ${words(seen.action)}`),
      el("div", { class: "scroll" }, el("img", { class: "chart", src: picture, alt: "Attention and decision over time" })),
      ...[seen.not_drawn ? soft(`${count(seen.not_drawn)} older ones are not drawn`) : null].filter(Boolean),
      table([["level", ""], ["memory", "w"], ["attention", "n"], ["decision", "n"], ["made", "t"]],
        seen.entries.map(one => [one.level, one.content, two(one.attention), signed(one.decision), moment(one.created_at)])),
      ...[seen.counting > seen.entries.length ? soft(`and ${count(seen.counting - seen.entries.length)} that weigh less`) : null].filter(Boolean));
  } catch (error) {
    if (error instanceof Refused) return closed(error.message);
    place.replaceChildren(el("p", { class: "bad" }, error.message));
  }
}

// ---- Controller

async function controller() {
  const seen = await told("/api/controller");
  const slopes = [...new Set(seen.table.map(({ row }) => row.grad_l))];
  const bands = [...new Set(seen.table.map(({ row }) => `D ${row.D}, P ${row.P}, Ω ${row.Omega}`))];
  const cell = (slope, band) => {
    const { row, visits } = seen.table.find(({ row }) => row.grad_l === slope && `D ${row.D}, P ${row.P}, Ω ${row.Omega}` === band);
    return el("td", { class: visits ? "seen" : null }, el("b", {}, words(row.macro_state)),
      el("span", { class: "soft" }, `${row.cell}${visits ? ` · ${plural(visits, "time", "times")}` : ""}`));
  };
  const { epsilon, delta, rho, theta } = seen.defaults;
  return [card(el("h2", {}, "The decision table"),
    soft(`${plural(seen.decisions, "decision", "decisions")} in ${plural(seen.journals, "journal", "journals")}. Unless a journal says otherwise: ε ${epsilon}, δ ${delta}, ρ ${rho}, θ ${theta}.`),
    el("div", { class: "scroll" }, el("table", { class: "cells" }, el("thead", {}, el("tr", {}, el("th", {}), slopes.map(slope => el("th", {}, slope.includes("∇L") ? slope : `∇L ${slope}`)))),
      el("tbody", {}, bands.map(band => el("tr", {}, el("th", {}, band), slopes.map(slope => cell(slope, band))))))),
    seen.differing ? el("p", { class: "bad" }, `${plural(seen.differing, "decision differs", "decisions differ")} from what the journal says: artoo ggs explain TASK`) : null,
    seen.left_out ? soft(`${plural(seen.left_out, "older or longer journal was", "older or longer journals were")} left out.`) : null),
  seen.latest.length ? card(el("h2", {}, "Latest decisions"),
    table([["task", "w"], ["decision", "t"], ["cell", "n"], ["D", "n"], ["P", "n"], ["Ω", "n"], ["L", "n"], ["∇L", "n"], ["when", "t"]],
      seen.latest.map(one => [el("a", { href: `#report/${encodeURIComponent(one.task)}` }, one.task), words(one.decision) + (one.cause ? ` (${words(one.cause)})` : ""), one.cell ?? "–",
        two(one.loss && one.loss.D), two(one.loss && one.loss.P), two(one.loss && one.loss.Omega), two(one.loss && one.loss.L), signed(one.grad_l), moment(one.at)]))) : null];
}

// ---- Begin

$("key").addEventListener("submit", event => {
  event.preventDefault();
  token = $("token").value.replace(/^.*#/, "").replace(/[^0-9a-f]/g, "");
  sessionStorage.setItem(KEY, token);
  $("token").value = "";
  opened();
});
addEventListener("hashchange", () => {
  if (/^#[0-9a-f]{48}$/.test(location.hash)) { takeToken(); return opened(); }
  scrollTo(0, 0);
  draw();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && $("gate").hidden) poll(); });
setInterval(tick, 500);
takeToken();
if (token) opened(); else closed("");
