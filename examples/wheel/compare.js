// Plays the steps of `trace` on the compiled wheels, by the code of the page, and compares each state.
// Usage: trace | node compare.js docs/learn/wheel.js target/book/learn/wheel.wasm.js
'use strict';

const { readFileSync } = require('node:fs');
const { resolve } = require('node:path');

const [, , glue, compiled] = process.argv;
const { makeWheels } = require(resolve(glue));
require(resolve(compiled));
const wheels = makeWheels(globalThis.TICKWHEEL_WHEELS);
let steps = 0;
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const [step, expected] = line.split('\t');
  const [name, ...numbers] = step.split(' ');
  const found = wheels.play(name, ...numbers.map(Number));
  steps += 1;
  if (found !== expected) {
    console.error(`step ${steps}, ${step}:\ncore says     ${expected}\nthe page says ${found}`);
    process.exit(1);
  }
}
if (steps === 0) {
  console.error('no steps to compare');
  process.exit(1);
}
console.log(`wheels: ${steps} steps, the same in WebAssembly and in core`);
