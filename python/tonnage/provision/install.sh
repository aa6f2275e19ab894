# Installs Tonnage from the wheel in ~/tonnage-wheels, and $packages, in an environment of its own.
set -eu
python=python3
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || python=python3.11
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    sudo apt-get update -q
    sudo apt-get install -q -y "$python-venv"
fi
"$python" -m venv ~/tonnage
~/tonnage/bin/python -m pip install -q ~/tonnage-wheels/*.whl $packages
