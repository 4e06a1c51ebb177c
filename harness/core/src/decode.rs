//! Decoding a YAML tree with a table of keys: every mistake is collected, none stops the reading.
