# shellcheck shell=sh
# Sourced by the commands beside it, never run. Expects `root`, the checkout's folder.
# Says nothing on stdout: that belongs to the command which sourced it.

: "${root:?}"
venv_python="$root/.venv/bin/python"

# What an install depends on: where the checkout lies (an editable install points at it) and pyproject.toml.
wanted_stamp() {
    printf '%s %s' "$(cksum <"$root/pyproject.toml")" "$root"
}

# has_stamp EXTRA: is .venv complete, of this checkout, and made from this pyproject.toml?
has_stamp() {
    [ -x "$venv_python" ] || return 1
    [ ! -e "$root/.venv/installing" ] || return 1
    stamp=
    IFS= read -r stamp 2>/dev/null <"$root/.venv/stamps/$1" || [ -n "$stamp" ] || return 1
    [ "$stamp" = "$(wanted_stamp)" ]
}

# Puts into `base_python` a Python that is new enough and can make a virtual environment, or says what is missing.
find_python() {
    without_venv=
    for base_python in ${RUNE_PYTHON:+"$RUNE_PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if ! "$base_python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1; then
            [ "$base_python" != "${RUNE_PYTHON-}" ] || break
            continue
        fi
        ! "$base_python" -I -c 'import ensurepip, venv' </dev/null >/dev/null 2>&1 || return 0
        without_venv=${without_venv:-$base_python}
        [ "$base_python" != "${RUNE_PYTHON-}" ] || break
    done
    if [ -n "$without_venv" ]; then
        echo "rune: $without_venv cannot make a virtual environment. On Debian and Ubuntu:" \
            "apt install ${without_venv##*/}-venv" >&2
    elif [ -n "${RUNE_PYTHON-}" ]; then
        echo "rune: RUNE_PYTHON is '$RUNE_PYTHON', and that is no Python 3.11 or newer" >&2
    else
        echo "rune: Python 3.11 or newer is needed, and there is none among python3, python3.14 ... python3.11." \
            "If it is elsewhere: RUNE_PYTHON=/path/to/python3 $0" >&2
    fi
    return 1
}

# prepare EXTRA...: makes or mends .venv so that it holds Rune with these extras. At once when it does already.
prepare() {
    for extra in "$@"; do
        if ! has_stamp "$extra"; then
            find_python || exit 1
            "$base_python" -I "$root/scripts/prepare.py" --stamp "$(wanted_stamp)" "$@" </dev/null >&2 || exit
            return 0
        fi
    done
}

# Fetches the embedded model's file unless it is there. Failing is no end: Ollama may answer. Where the file is kept
# depends on the home, so the note of what was done holds for one home; a failed try is not repeated for an hour.
fetch_model_file() {
    [ -z "${RUNE_NO_FETCH:-}${RUNE_EMBEDDED_MODEL:-}" ] || return 0
    [ ! -e "$root/.venv/stamps/without-embedded" ] || return 0
    note="$root/.venv/stamps/model-file"
    home="${RUNE_HOME-}|${XDG_DATA_HOME-}|${HOME-}"
    noted_home=''
    noted_file=''
    if [ -e "$note" ]; then
        { IFS= read -r noted_home && IFS= read -r noted_file; } <"$note" || noted_home=
    fi
    if [ "$noted_home" = "$home" ]; then
        [ -z "$noted_file" ] || [ ! -e "$noted_file" ] || return 0
        [ -n "$noted_file" ] || [ -z "$(find "$note" -mmin -60)" ] || return 0
    fi
    code=0
    file=$(PIP_RETRIES="${PIP_RETRIES:-1}" "$venv_python" -P -m rune models fetch-embedded </dev/null) || code=$?
    [ "$code" -ne 130 ] || exit 130
    if [ "$code" -eq 0 ]; then
        # The last line is where the file is; the note stands in for it should none be told.
        file=$(printf '%s\n' "$file" | tail -n 1)
        file=${file:-$note}
    else
        echo "rune: going on without the embedded model. To try again: '$root/scripts/rune' models fetch-embedded" >&2
        file=
    fi
    # In a checkout that may not be written there is no note, and every start looks again.
    { printf '%s\n%s\n' "$home" "$file" >"$note"; } 2>/dev/null || :
}
