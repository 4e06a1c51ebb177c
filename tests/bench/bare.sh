#!/bin/sh
# Runs every job script below a folder, one after the other, as simply as a shell can: the floor that a harness is held against.
#   bare.sh FOLDER SCRIPT
find "$1" -name "$2" >"$1/scripts"
while read -r script; do
  cd "${script%/*}" || exit 1
  sh "./$2" >bare.out 2>&1 </dev/null || exit 1
done <"$1/scripts"
