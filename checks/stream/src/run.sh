#!/bin/sh
# Builds the kernel where there is a compiler, and takes the static program for this kind of processor where there is none.
set -eu
static=./stream.$(uname -m)
if command -v cc >/dev/null; then
  cc -O3 -march=native -pthread stream.c -o stream
elif [ -x "$static" ]; then
  cp "$static" stream
else
  echo "there is no cc here, and no program $static: \`make static\` in the folder src of the check builds it" >&2
  exit 1
fi
exec ./stream "$@"
