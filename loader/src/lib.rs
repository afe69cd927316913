//! Builds runtime.js: the loader around the WebAssembly module.
