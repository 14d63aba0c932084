"""Holds an answer against its schema of docs/schema: the part of JSON Schema that those use."""
import json
import os
import re

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def is_a(value, kind):
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def wrong(value, schema, root, where="$"):
    """Yields what is wrong, a line each."""
    if "$ref" in schema:
        found = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found[part]
        yield from wrong(value, found, root, where)
    for part in schema.get("allOf", []):
        yield from wrong(value, part, root, where)
    if "oneOf" in schema:
        fits = [part for part in schema["oneOf"] if not list(wrong(value, part, root, where))]
        if len(fits) != 1:
            yield f"{where} fits {len(fits)} of those that it may be"
    if "anyOf" in schema and all(any(wrong(value, part, root, where)) for part in schema["anyOf"]):
        yield f"{where} is none of those that it may be"
    if "const" in schema and value != schema["const"]:
        yield f"{where} is not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of {schema['enum']}: {value!r}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        yield f"{where} is no {kinds}: {value!r}"
        return
    if "minimum" in schema and is_a(value, "number") and value < schema["minimum"]:
        yield f"{where} is below {schema['minimum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where} does not match {schema['pattern']}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from wrong(item, schema.get("items", {}), root, f"{where}[{number}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where} lacks {name}"
        for name, item in value.items():
            if name in known:
                yield from wrong(item, known[name], root, f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{where}.{name} is not in the schema"


def load(name):
    """The schema of an answer: "window", or "window-tree"."""
    path = os.path.join(os.environ["TIDEMARK_SOURCE"], "docs/schema", name + ".json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def valid(answer, name):
    """Returns the answer, which holds to the schema of that name."""
    schema = load(name)
    found = list(wrong(answer, schema, schema))
    assert not found, (name, found[:5])
    return answer
