'use strict';

// Makes a title usable in a web address: "Hello, big World!" becomes "hello-big-world".
function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/, '-')
    .replace(/^-|-$/g, '');
}

module.exports = { slug };
