#!/bin/sh
# Fails when greet.sh does not greet as it should.
failed=0

expect() {
    if [ "$1" != "$2" ]; then
        printf 'expected:\n%s\ngot:\n%s\n' "$1" "$2"
        failed=1
    fi
}

expect "Hello, Ann" "$(sh ./greet.sh Ann)"
expect "Hello, Ann
Hello, Bob" "$(sh ./greet.sh Ann Bob)"
expect "Hello, nobody" "$(sh ./greet.sh)"

[ "$failed" -eq 0 ] && echo "all right"
exit "$failed"
