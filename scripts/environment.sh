# Sourced by the scripts beside it: a virtual environment with the package in it, made once.
# Usage: set_up EXTRAS STAMP   (for example: set_up "plot" demo)

set_up() {
    local extras="$1" stamp="$2" python
    python="${PYTHON:-python3}"
    if ! command -v "$python" >/dev/null; then
        echo "factorgraph_dyn needs Python 3.11 or later, but there is no '$python'; set PYTHON to one." >&2
        exit 1
    fi
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "factorgraph_dyn needs Python 3.11 or later, but '$python' is $("$python" -V 2>&1); set PYTHON to a newer one." >&2
        exit 1
    fi
    local environment="${VIRTUAL_ENVIRONMENT:-.venv}"
    if [ ! -x "$environment/bin/python" ]; then
        "$python" -m venv "$environment"
    fi
    # Install again only when what is to be installed has changed.
    local wanted
    wanted="$extras $(cksum < pyproject.toml)"
    if [ "$(cat "$environment/.installed-$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing factorgraph_dyn[$extras] into $environment ..."
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]"
        echo "$wanted" > "$environment/.installed-$stamp"
    fi
    PATH="$(cd "$environment" && pwd)/bin:$PATH"
    export PATH
}
