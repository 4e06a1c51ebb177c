//! CEL, the only expression language: placeholders, `assert`, `value`, `-E`, `when`.
