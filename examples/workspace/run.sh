#!/bin/sh
exec python3 src/app.py "$@"
