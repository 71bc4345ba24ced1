#!/bin/sh
# Greets everybody who is named: greet.sh NAME...
if [ $# -eq 0 ]; then
    echo "Hello, nobody"
    exit 1
fi
for name in "$@"; do
    echo "Hello, $1"
done
