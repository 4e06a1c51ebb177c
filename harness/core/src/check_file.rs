//! The check file format: one table of keys that is struct, decoder, hints and JSON schema at once.
