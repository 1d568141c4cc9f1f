"""Validates a run file against the JSON Schema, closed: a field that the schema does not describe is an error too.

usage: check_schema.py SCHEMA RUN_JSON

Exits with 77 where the package jsonschema is not installed.
"""

import json
import sys

try:
    import jsonschema
except ImportError:
    print("SKIP: Python package jsonschema is not installed")
    sys.exit(77)


def closed(schema):
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(part) for key, part in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


schema = load(sys.argv[1])
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(jsonschema.Draft202012Validator(closed(schema)).iter_errors(load(sys.argv[2])))
for error in errors:
    print(f"/{'/'.join(map(str, error.absolute_path))}: {error.message}")
sys.exit(1 if errors else 0)
