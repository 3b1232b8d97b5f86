"""A tiny notes service."""

import json
import sqlite3

TIMEOUT = 30


def connect(path="notes.db"):
    return sqlite3.connect(path, timeout=TIMEOUT)


def notes(connection):
    rows = connection.execute("SELECT id, body FROM notes ORDER BY id")
    return [{"id": number, "body": body} for number, body in rows]


def main():
    with connect() as connection:
        print(json.dumps(notes(connection)))


if __name__ == "__main__":
    main()
