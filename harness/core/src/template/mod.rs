//! `${{ }}` placeholders in a YAML tree.
