'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { slug } = require('./slug.js');

test('one word', () => {
  assert.strictEqual(slug('Hello'), 'hello');
});

test('several words', () => {
  assert.strictEqual(slug('Hello, big World!'), 'hello-big-world');
});
