"""Compares formats of two releases. Each function returns a list of sentences, one for each incompatible change."""

import json
import re

LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
# Text for people, which may change (docs/compatibility.md).
TEXT = {"action", "actions", "changes", "drift", "expected", "facts", "failures", "message", "notes", "objections", "problems",
        "reason", "remedy", "seen", "warnings", "what", "why"}
UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def resolve(whole, schema):
    while "$ref" in schema:
        place, schema = schema["$ref"], whole
        for key in place.removeprefix("#/").split("/"):
            schema = schema[key]
    return schema


def types(schema):
    given = schema.get("type", [])
    return set(given if isinstance(given, list) else [given])


def values(schema):
    return [schema["const"]] if "const" in schema else schema.get("enum")


def alternatives(schema):
    return schema.get("anyOf", schema.get("oneOf", []))


def schema_of(schema, key):
    """The schema of a key, listed or by a pattern; None if the key is not accepted."""
    if key in schema.get("properties", {}):
        return schema["properties"][key]
    return next((below for pattern, below in schema.get("patternProperties", {}).items() if re.search(pattern, key)), None)


class Pair:
    """One place in the earlier and in the current schema."""

    def __init__(self, earlier_whole, now_whole, earlier=None, now=None, place=""):
        self.wholes = earlier_whole, now_whole
        self.earlier = resolve(earlier_whole, earlier_whole if earlier is None else earlier)
        self.now = resolve(now_whole, now_whole if now is None else now)
        self.place = place

    def below(self, earlier, now, step):
        return Pair(*self.wholes, earlier, now, self.place + step)

    def children(self):
        for key, earlier in self.earlier.get("properties", {}).items():
            if (now := schema_of(self.now, key)) is not None:
                yield self.below(earlier, now, "/" + key)
        for key, step in (("items", "[]"), ("additionalProperties", "/*")):
            if isinstance(self.earlier.get(key), dict) and isinstance(self.now.get(key), dict):
                yield self.below(self.earlier[key], self.now[key], step)

    def pairs_of_alternatives(self):
        """Alternatives have no names: they correspond by position, and new ones are at the end."""
        yield from (self.below(*pair, "") for pair in zip(alternatives(self.earlier), alternatives(self.now)))


def walk(pair, check):
    found = [pair.place + ": " + sentence for sentence in check(pair)]
    for below in (*pair.children(), *pair.pairs_of_alternatives()):
        found += walk(below, check)
    return found


def _no_longer_accepted(pair):
    earlier, now = pair.earlier, pair.now
    for key in earlier.get("properties", {}):
        if schema_of(now, key) is None and now.get("additionalProperties") is False:
            yield f"the key `{key}` is no longer accepted"
    for pattern in set(earlier.get("patternProperties", {})) - set(now.get("patternProperties", {})):
        yield f"keys of the pattern `{pattern}` are no longer accepted"
    for key in set(now.get("required", [])) - set(earlier.get("required", [])):
        yield f"the key `{key}` is now required"
    if types(now) and not types(earlier) <= types(now):
        yield "a type is no longer accepted"
    if values(now) is not None:
        for value in values(earlier) or ["anything else"]:
            if value not in values(now):
                yield f"`{value}` is no longer accepted"
    for bound in LOWER_BOUNDS:
        if bound in now and now[bound] > earlier.get(bound, float("-inf")):
            yield f"{bound} was raised"
    for bound in UPPER_BOUNDS:
        if bound in now and now[bound] < earlier.get(bound, float("inf")):
            yield f"{bound} was lowered"
    if "pattern" in now and now["pattern"] != earlier.get("pattern"):
        yield "the pattern has changed"
    if len(alternatives(now)) < len(alternatives(earlier)):
        yield "an alternative was removed"


def no_longer_accepted(earlier, now):
    """What files that follow the earlier schema may contain and the current one refuses."""
    return walk(Pair(earlier, now), _no_longer_accepted)


def _no_longer_promised(pair):
    earlier, now = pair.earlier, pair.now
    for key in earlier.get("properties", {}):
        if key not in now.get("properties", {}):
            yield f"the key `{key}` was removed"
    for key in set(earlier.get("required", [])) - set(now.get("required", [])):
        yield f"the key `{key}` is no longer always present"
    if types(earlier) and not (types(now) and types(now) <= types(earlier)):
        yield "values of another type are possible"
    if "const" in earlier and now.get("const") != earlier["const"]:
        yield f"the value is no longer {json.dumps(earlier['const'])}"
    for value in earlier.get("enum", []):
        if value not in (values(now) or []):
            yield f"the value `{value}` was removed or renamed"
    if "pattern" in earlier and now.get("pattern") != earlier["pattern"]:
        yield "the pattern has changed"


def no_longer_promised(earlier, now):
    """What readers of documents may rely on in the earlier schema and not in the current one."""
    return walk(Pair(earlier, now), _no_longer_promised)


def is_text(value):
    return isinstance(value, str) or isinstance(value, list) and all(isinstance(each, str) for each in value)


def missing_values(earlier, now, place=""):
    """Values of the earlier document that the current one lacks or changes. More keys are no change."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        found = [f"{place}/{key} is missing" for key in earlier if key not in now]
        for key in earlier.keys() & now.keys():
            if key in TEXT and is_text(earlier[key]) and is_text(now[key]):
                continue
            found += missing_values(earlier[key], now[key], f"{place}/{key}")
        return sorted(found)
    if isinstance(earlier, list) and isinstance(now, list) and len(earlier) == len(now):
        return [each for number, pair in enumerate(zip(earlier, now))
                for each in missing_values(*pair, f"{place}[{number}]")]
    return [] if earlier == now else [f"{place} is {json.dumps(now)[:80]}, was {json.dumps(earlier)[:80]}"]
