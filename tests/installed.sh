#!/bin/sh
# An installed `penstock` on the PATH works: it says its version, starts, is written to, read, and ends in order.
# installed.sh [compiled|interpreted]: that its hot modules are so, too.
set -eu
place=$(mktemp -d)
cd "$place"
penstock --version | grep "${1:-}"
penstock service install --user --dry-run | grep -q '^ExecStart='  # the units came along
penstock up --data data --listen 127.0.0.1:0 2> said &
pid=$!
trap 'kill $pid 2>/dev/null || true; rm -rf "$place"' EXIT
penstock wait --data data --timeout 60
address=$(sed -n 's/^ *listens on *//p' said | head -n 1)
penstock topic create words -p 1 -b "$address"
printf 'one\ntwo\n' | penstock produce words -b "$address"
test "$(penstock consume words -o start -e -b "$address" | tr '\n' ' ')" = "one two "
kill $pid
wait $pid
test -e data/.kafka_cleanshutdown
echo "works: $address"
