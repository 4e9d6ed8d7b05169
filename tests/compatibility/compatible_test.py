"""The comparison of formats finds each kind of incompatible change, and accepts additions."""

import copy
import json
import unittest

from compatible import missing_values, no_longer_accepted, no_longer_promised

SCHEMA = {
    "definitions": {"name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 32}},
    "type": "object",
    "additionalProperties": False,
    "required": ["vm"],
    "properties": {
        "schema_version": {"const": 1},
        "vm": {"$ref": "#/definitions/name"},
        "mode": {"enum": ["mirror", "flat"]},
        "count": {"anyOf": [{"enum": ["auto"]}, {"type": "integer", "minimum": 0, "maximum": 16}]},
        "vfs": {"type": "array", "maxItems": 128, "items": {"type": "object", "properties": {"mtu": {"type": ["integer", "null"]}}}},
    },
}


def changed(change):
    schema = copy.deepcopy(SCHEMA)
    change(schema)
    return schema


class Schemas(unittest.TestCase):
    def accepted(self, change):
        return no_longer_accepted(SCHEMA, changed(change))

    def promised(self, change):
        return no_longer_promised(SCHEMA, changed(change))

    def test_accepts_itself_and_additions(self):
        def add(schema):
            schema["properties"]["new"] = {"type": "string"}
            schema["properties"]["mode"]["enum"].append("partial")
        for change in (lambda schema: None, add):
            self.assertEqual([], self.accepted(change))
            self.assertEqual([], self.promised(change))

    def test_finds_removed_key(self):
        remove = lambda schema: schema["properties"].pop("mode")
        self.assertEqual([": the key `mode` is no longer accepted"], self.accepted(remove))
        self.assertEqual([": the key `mode` was removed"], self.promised(remove))

    def test_a_pattern_can_replace_a_key(self):
        def replace(pattern, value):
            def change(schema):
                schema["properties"].pop("mode")
                schema["patternProperties"] = {pattern: value}
            return change
        self.assertEqual([], self.accepted(replace("^m[a-z]+$", {"enum": ["mirror", "flat"]})))
        self.assertEqual(["/mode: `flat` is no longer accepted"], self.accepted(replace("^m[a-z]+$", {"enum": ["mirror"]})))
        self.assertEqual([": the key `mode` is no longer accepted"], self.accepted(replace("^n[a-z]+$", {})))

    def test_finds_removed_pattern(self):
        earlier = changed(lambda schema: schema.update(patternProperties={"^X": {"type": "string"}}))
        self.assertEqual([": keys of the pattern `^X` are no longer accepted"], no_longer_accepted(earlier, SCHEMA))

    def test_finds_removed_key_below_a_list(self):
        remove = lambda schema: schema["properties"]["vfs"]["items"]["properties"].pop("mtu")
        self.assertEqual(["/vfs[]: the key `mtu` was removed"], self.promised(remove))

    def test_finds_removed_value(self):
        remove = lambda schema: schema["properties"]["mode"]["enum"].remove("flat")
        self.assertEqual(["/mode: `flat` is no longer accepted"], self.accepted(remove))
        self.assertEqual(["/mode: the value `flat` was removed or renamed"], self.promised(remove))

    def test_finds_value_restricted_to_a_list(self):
        restrict = lambda schema: schema["definitions"]["name"].update(enum=["a"])
        self.assertEqual(["/vm: `anything else` is no longer accepted"], self.accepted(restrict))

    def test_finds_narrower_range(self):
        self.assertEqual(["/count: maximum was lowered"],
                         self.accepted(lambda schema: schema["properties"]["count"]["anyOf"][1].update(maximum=8)))
        self.assertEqual(["/count: minimum was raised"],
                         self.accepted(lambda schema: schema["properties"]["count"]["anyOf"][1].update(minimum=1)))
        self.assertEqual(["/vm: minLength was raised"],
                         self.accepted(lambda schema: schema["definitions"]["name"].update(minLength=2)))
        self.assertEqual(["/vfs: maxItems was lowered"],
                         self.accepted(lambda schema: schema["properties"]["vfs"].update(maxItems=64)))

    def test_finds_changed_pattern(self):
        change = lambda schema: schema["definitions"]["name"].update(pattern="^[a-f]+$")
        self.assertEqual(["/vm: the pattern has changed"], self.accepted(change))
        self.assertEqual(["/vm: the pattern has changed"], self.promised(change))

    def test_finds_change_of_required_keys(self):
        self.assertEqual([": the key `mode` is now required"],
                         self.accepted(lambda schema: schema["required"].append("mode")))
        self.assertEqual([": the key `vm` is no longer always present"],
                         self.promised(lambda schema: schema["required"].clear()))

    def test_finds_change_of_type(self):
        mtu = lambda types: lambda schema: schema["properties"]["vfs"]["items"]["properties"]["mtu"].update(type=types)
        self.assertEqual(["/vfs[]/mtu: a type is no longer accepted"], self.accepted(mtu("integer")))
        self.assertEqual([], self.accepted(mtu(["integer", "null", "string"])))
        self.assertEqual(["/vfs[]/mtu: values of another type are possible"],
                         self.promised(mtu(["integer", "null", "string"])))
        self.assertEqual([], self.promised(mtu("integer")))

    def test_finds_removed_alternative(self):
        remove = lambda schema: schema["properties"]["count"]["anyOf"].pop()
        self.assertEqual(["/count: an alternative was removed"], self.accepted(remove))

    def test_finds_another_version(self):
        change = lambda schema: schema["properties"].update(schema_version={"const": 2})
        self.assertEqual(["/schema_version: the value is no longer 1"], self.promised(change))


class Documents(unittest.TestCase):
    def test_accepts_more_keys(self):
        self.assertEqual([], missing_values({"vfs": [{"mtu": 9000}]}, {"vfs": [{"mtu": 9000, "new": 1}], "also": 2}))

    def test_finds_what_is_missing_or_changed(self):
        earlier = {"vfs": [{"mtu": 9000, "vlan": None}], "vm": "a"}
        now = json.loads('{"vfs": [{"mtu": "9000"}], "vm": "a"}')
        self.assertEqual(['/vfs[0]/mtu is "9000", was 9000', "/vfs[0]/vlan is missing"], sorted(missing_values(earlier, now)))

    def test_accepts_other_text_and_no_other_type(self):
        earlier = {"message": "no PF", "problems": ["a"], "drift": None}
        self.assertEqual([], missing_values(earlier, {"message": "no such PF", "problems": [], "drift": None}))
        self.assertEqual(['/message is 1, was "no PF"'], missing_values({"message": "no PF"}, {"message": 1}))

    def test_finds_another_number_of_entries(self):
        self.assertEqual(1, len(missing_values({"vfs": [1]}, {"vfs": [1, 2]})))


if __name__ == "__main__":
    unittest.main()
