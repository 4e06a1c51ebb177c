#!/usr/bin/env python3
"""The rows of an SQLite results database as input of psql, for a PostgreSQL database of the same version that has none.

    to_postgres.py FILE | psql ...
"""
import sqlite3
import sys


def field(value):
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return "\\\\x" + value.hex()
    text = str(value)
    for special, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(special, escape)
    return text


db = sqlite3.connect(sys.argv[1])
# References are not checked: the tables come in any order.
print("SET session_replication_role = replica;")
for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall():
    # A file keeps the figures of runs in the order of their metrics, a server as they were written.
    order = ' ORDER BY "case", metric' if table == "run_figure" else ""
    rows = db.execute(f'SELECT * FROM "{table}"{order}')
    first = rows.fetchone()
    if table == "schema_version" or first is None:
        continue
    names = ", ".join(f'"{column[0]}"' for column in rows.description)
    print(f'COPY "{table}" ({names}) FROM STDIN;')
    print("\t".join(map(field, first)))
    for row in rows:
        print("\t".join(map(field, row)))
    print("\\.")
