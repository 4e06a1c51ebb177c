# The commands of daily work. `just` alone lists them.

export CARGO_TERM_COLOR := "auto"

_default:
    @just --list --unsorted

# Compile everything.
check:
    cargo check --workspace --all-targets

# All tests, or those that the arguments select.
test *args:
    cargo test --workspace {{ args }}

# The tests on a real Kubernetes (Linux, root).
cluster *args:
    MUSTER_CLUSTER_TESTS=required cargo test --test cluster -- {{ args }}

# Run the shipped checks on this machine.
checks *args:
    cargo run -- -c checks/ -r --performance-report {{ args }}

# Format everything.
fmt:
    cargo fmt --all

# Format and lints, as in the gate.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Licences, layers, sources (needs cargo-deny).
deny:
    cargo deny check --hide-inclusion-graph licenses bans sources

# Write the JSON schemas and docs/reference.md from the key tables.
schema:
    MUSTER_UPDATE=1 cargo test -p muster-check schema

# Review changed snapshots one by one (needs cargo-insta).
review:
    cargo insta review

# The whole gate.
ci:
    bash .ci/run

# A bench of tests/bench, in a release build; all of them by default.
bench name="all":
    bash tests/bench/{{ name }}.sh
