# The commands of daily work; `just` alone lists them. None does more than its one line.

export CARGO_TERM_COLOR := "auto"

_default:
    @just --list --unsorted

# Does it compile?
check:
    cargo check --workspace --all-targets

# The README's test command.
test *args:
    cargo test --workspace {{ args }}

# Only the tests on a real Kubernetes (Linux, root).
cluster *args:
    MUSTER_CLUSTER_TESTS=required cargo test --test cluster -- {{ args }}

# The shipped checks, on this machine.
checks *args:
    cargo run -- -c checks/ -r --performance-report {{ args }}

# Format everything.
fmt:
    cargo fmt --all

# What the gate says about the code, without the tests.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Licences, layering, sources (needs cargo-deny).
deny:
    cargo deny check --hide-inclusion-graph licenses bans sources

# Write check.schema.json and site.schema.json anew from the tables of keys.
schema:
    MUSTER_UPDATE=1 cargo test -p muster-core schema

# Look at changed snapshots one by one (needs cargo-insta).
review:
    cargo insta review

# All of the gate.
ci:
    bash .ci/run

# The figures of tests/bench/, in a release build.
bench name="all":
    bash tests/bench/{{ name }}.sh
