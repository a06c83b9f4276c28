// Draws the wheels of tickwheel-core. All that a wheel does is done by its WebAssembly: the page calls it and draws the state that it gets.
'use strict';

// The wheels, from the bytes of wheel.wasm.js. `play` is what the check of the site uses, too.
function makeWheels(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
  const text = () => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.state(), exports.length()));
  const call = (name, ...numbers) => {
    exports[name](...numbers);
    return text();
  };
  return { play: call, call: (name, ...numbers) => JSON.parse(call(name, ...numbers)) };
}

if (typeof document === 'undefined') {
  module.exports = { makeWheels };
} else if (globalThis.TICKWHEEL_WHEELS) {
  showWheels(document.getElementById('wheel-page'), makeWheels(globalThis.TICKWHEEL_WHEELS));
}

function showWheels(page, wheels) {
  const KINDS = ['simple: one ring', 'hashed: one ring, with rounds', 'hierarchical: two levels', "Kafka's: levels on demand"];
  page.innerHTML = `
    <fieldset><legend>The wheel</legend>
      <label>Structure <select data-is="kind">${KINDS.map((kind, at) => `<option value="${at}">${kind}</option>`).join('')}</select></label>
      <label>Slots in a ring <select data-is="slots"><option>4</option><option>8</option></select></label>
      <button type="button" data-is="begin">Begin anew</button>
    </fieldset>
    <fieldset><legend>Tasks</legend>
      <label>Delay (ticks) <input type="number" data-is="delay" min="1" max="4000" value="7" inputmode="numeric"></label>
      <button type="button" data-is="insert">Insert</button>
      <button type="button" data-is="some">Insert five</button>
    </fieldset>
    <fieldset><legend>Time</legend>
      <button type="button" data-is="tick">Tick</button>
      <button type="button" data-is="stop">Next stop</button>
      <button type="button" data-is="play" aria-pressed="false">Play</button>
      <label>Speed <input type="range" data-is="speed" min="1" max="10" value="3"></label>
    </fieldset>
    <p class="wheel-now" data-is="now"></p>
    <p class="wheel-said" data-is="said" role="status" aria-live="polite"></p>
    <div class="wheel-scene" data-is="scene"></div>
    <div data-is="queue"></div>
    <h3>Pending tasks</h3>
    <ul class="wheel-list" data-is="list"></ul>`;
  const part = (name) => page.querySelector(`[data-is="${name}"]`);
  const scene = part('scene');
  const names = new Map();
  const buttons = new Map();
  let state = null;
  let levels = 0;
  let playing = null;

  // Letters in the order of insertion; after z comes a again.
  const letter = (id) => String.fromCharCode(97 + (id % 26));
  const named = (id) => names.get(id) || letter(id);
  const kind = () => Number(part('kind').value);

  function begin() {
    pause();
    names.clear();
    buttons.forEach((button) => button.remove());
    buttons.clear();
    scene.replaceChildren();
    levels = 0;
    show(wheels.call('begin', kind(), Number(part('slots').value)), 'An empty wheel. The time is 0.');
  }

  function insert(delay) {
    const before = state.now;
    const next = wheels.call('insert', delay);
    const { inserted, refused, made } = next.did;
    if (refused) {
      show(next, refused === 'too far'
        ? `A delay of ${delay} is refused: this wheel does not reach ${before + delay}.`
        : `A delay of ${delay} is refused: ${refused}.`);
      return;
    }
    names.set(inserted, letter(inserted) + (before + delay));
    const task = next.tasks.find((each) => each.id === inserted);
    show(next, `${named(inserted)} is inserted: ${place(next, task)}.${made ? ` ${made === 1 ? 'A level was' : `${made} levels were`} made for it.` : ''}`);
  }

  function cancel(id) {
    const next = wheels.call('cancel', id);
    show(next, next.did.cancelled === null ? 'This task is not pending.' : `${named(id)} is cancelled.`);
  }

  function advance(how) {
    if (how === 'stop' && state.next === null) {
      show(state, 'Nothing is pending: there is no next stop.');
      return false;
    }
    const next = wheels.call(how);
    const { fired, moved } = next.did;
    const said = [];
    if (moved.length) said.push(`${moved.map((task) => named(task.id)).join(', ')} moved to a finer level`);
    if (fired.length) said.push(`${fired.map(named).join(', ')} fired`);
    show(next, `The time is ${next.now}: ${said.length ? said.join('; ') : 'nothing is due'}.`);
    return true;
  }

  function place(next, task) {
    const level = next.levels.length > 1 || kind() > 1 ? `level ${task.level + 1}, ` : '';
    const rounds = kind() === 1 ? `, ${task.rounds} ${task.rounds === 1 ? 'round' : 'rounds'} to wait` : '';
    return `${level}slot ${task.slot}${rounds}`;
  }

  // The first tick from the level's clock on that is in the slot.
  const firstTick = (ring, slot, slots) => {
    const at = Math.floor(ring.clock / ring.tick);
    return (at + ((slot - (at % slots)) + slots) % slots) * ring.tick;
  };

  const point = (radius, turn) => [170 + radius * Math.sin(turn * 2 * Math.PI), 170 - radius * Math.cos(turn * 2 * Math.PI)];

  function drawRing(level) {
    const ring = document.createElement('figure');
    ring.className = level > 0 && levels > 0 ? 'wheel-ring made' : 'wheel-ring';
    const slots = state.slots;
    let svg = '';
    for (let slot = 0; slot < slots; slot += 1) {
      const [from, to] = [(slot - 0.5) / slots, (slot + 0.5) / slots];
      const [a, b, c, d] = [point(135, from), point(135, to), point(50, to), point(50, from)];
      svg += `<path data-slot="${slot}" d="M${a} A135 135 0 0 1 ${b} L${c} A50 50 0 0 0 ${d} Z"></path>`;
      const [x, y] = point(153, slot / slots);
      svg += `<text data-label="${slot}" x="${x}" y="${y}"></text>`;
    }
    svg += '<line x1="170" y1="170" x2="170" y2="128"></line><circle cx="170" cy="170" r="6"></circle>';
    ring.innerHTML = `<svg viewBox="0 0 340 340" aria-hidden="true">${svg}</svg><figcaption></figcaption>`;
    scene.append(ring);
  }

  function show(next, said) {
    state = next;
    for (let level = scene.querySelectorAll('figure').length; level < state.levels.length; level += 1) drawRing(level);
    levels = state.levels.length;
    scene.querySelectorAll('figure').forEach((figure, level) => {
      const ring = state.levels[level];
      const hand = Math.floor(ring.clock / ring.tick);
      figure.querySelectorAll('path').forEach((path, slot) => path.classList.toggle('now', slot === hand % state.slots));
      figure.querySelectorAll('text').forEach((text, slot) => {
        text.textContent = kind() === 1 ? `slot ${slot}` : firstTick(ring, slot, state.slots);
      });
      // The hand turns on and never back, so that its way is the way of the time.
      figure.querySelector('line').style.transform = `rotate(${(hand * 360) / state.slots}deg)`;
      const slots = ring.tick === 1 ? 'slots of 1 tick' : `slots of ${ring.tick} ticks`;
      figure.querySelector('figcaption').textContent = state.levels.length > 1 || kind() > 1 ? `level ${level + 1}: ${slots}` : slots;
    });
    part('now').textContent = `Now: ${state.now}. Next stop: ${state.next === null ? 'none' : state.next}. Pending: ${state.tasks.length}.`;
    part('said').textContent = said;
    part('queue').innerHTML = kind() > 1
      ? `<h3>Queue of buckets: expiry, level</h3><ol class="wheel-queue">${state.buckets.map((bucket) => `<li>${bucket.expiry}, level ${bucket.level + 1}</li>`).join('') || '<li>empty</li>'}</ol>`
      : '';
    showTasks();
  }

  // The tasks in the rings are for a pointer. The list has the same tasks for a keyboard and for a screen reader.
  function showTasks() {
    const moved = new Set(state.did.moved.map((task) => task.id));
    const pending = new Set(state.tasks.map((task) => task.id));
    buttons.forEach((button, id) => {
      if (!pending.has(id)) {
        button.remove();
        buttons.delete(id);
      }
    });
    for (const task of state.tasks) {
      let button = buttons.get(task.id);
      if (!button) {
        button = document.createElement('button');
        button.type = 'button';
        button.tabIndex = -1;
        button.setAttribute('aria-hidden', 'true');
        button.title = 'Cancel';
        button.addEventListener('click', () => cancel(task.id));
        buttons.set(task.id, button);
        scene.append(button);
      }
      button.className = `wheel-task${task.level > 0 || task.rounds > 0 ? ' far' : ''}${moved.has(task.id) ? ' moved' : ''}`;
      button.textContent = named(task.id) + (kind() === 1 ? `:${task.rounds}` : '');
    }
    place2d();
    const focused = page.ownerDocument.activeElement;
    const at = [...part('list').querySelectorAll('button')].indexOf(focused);
    const sorted = [...state.tasks].sort((a, b) => a.due - b.due || a.id - b.id);
    part('list').innerHTML = sorted.length
      ? sorted.map((task) => `<li><button type="button" data-id="${task.id}" aria-label="Cancel ${named(task.id)}, ${place(state, task)}">cancel ${named(task.id)}</button></li>`).join('')
      : '<li>none</li>';
    // A task that goes does not take the focus with it.
    if (at >= 0) {
      const left = part('list').querySelectorAll('button');
      (left[Math.min(at, left.length - 1)] || part('insert')).focus();
    }
  }

  // Puts each task into its slot: three tasks of a slot stand one above the other, and more of them beside these.
  function place2d() {
    const origin = scene.getBoundingClientRect();
    const figures = [...scene.querySelectorAll('figure svg')].map((svg) => svg.getBoundingClientRect());
    const counts = new Map();
    for (const task of state.tasks) {
      const box = figures[task.level];
      const spot = `${task.level}/${task.slot}`;
      const nth = counts.get(spot) || 0;
      counts.set(spot, nth + 1);
      const [x, y] = point(97, task.slot / state.slots);
      const column = Math.floor(nth / 3);
      const aside = Math.ceil(column / 2) * (column % 2 ? 22 : -22);
      const above = [0, -26, 26][nth % 3];
      const button = buttons.get(task.id);
      const left = box.left - origin.left + (x / 340) * box.width - button.offsetWidth / 2 + aside;
      const top = box.top - origin.top + (y / 340) * box.height - button.offsetHeight / 2 + above;
      button.style.transform = `translate(${left}px, ${top}px)`;
    }
  }

  function pause() {
    clearTimeout(playing);
    playing = null;
    part('play').textContent = 'Play';
    part('play').setAttribute('aria-pressed', 'false');
  }

  function play() {
    part('play').textContent = 'Pause';
    part('play').setAttribute('aria-pressed', 'true');
    const turn = () => {
      if (state.tasks.length === 0) {
        pause();
        return;
      }
      advance('tick');
      playing = setTimeout(turn, 2000 / Number(part('speed').value));
    };
    playing = setTimeout(turn, 0);
  }

  const delay = () => Math.max(0, Math.min(4000, Math.trunc(Number(part('delay').value)) || 0));
  part('kind').value = '3';
  part('kind').addEventListener('change', begin);
  part('slots').addEventListener('change', begin);
  part('begin').addEventListener('click', begin);
  part('insert').addEventListener('click', () => insert(delay()));
  part('delay').addEventListener('keydown', (event) => event.key === 'Enter' && insert(delay()));
  part('some').addEventListener('click', () => [7, 2, 5, 2, 9].forEach(insert));
  part('tick').addEventListener('click', () => advance('tick'));
  part('stop').addEventListener('click', () => advance('stop'));
  part('play').addEventListener('click', () => (playing === null ? play() : pause()));
  part('list').addEventListener('click', (event) => event.target.dataset.id && cancel(Number(event.target.dataset.id)));
  new ResizeObserver(() => state && place2d()).observe(scene);
  begin();
}
