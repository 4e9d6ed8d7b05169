#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support.hpp"

namespace vfpass::config {
namespace {

using nlohmann::json;

const std::filesystem::path schemaFolder =
    std::filesystem::path(VFPASS_SOURCE_DIR) / "docs" / "schema";

TEST(Schema, EqualsTheDocumentedFile) {
  EXPECT_EQ(mappingSchema(), readWhole(schemaFolder / "mapping.schema.json"));
  EXPECT_EQ(hostSchema(), readWhole(schemaFolder / "host.schema.json"));
}

// Every property and every list entry needs a title, because messages are made from titles.
void expectTitles(const json& schema, const std::string& where) {
  if (!schema.is_object() || schema.contains("$ref")) {
    return;
  }
  EXPECT_TRUE(schema.contains("title")) << where;
  const json properties = schema.value("properties", json::object());
  if (schema.value("type", "") == "object") {
    EXPECT_EQ(schema.value("additionalProperties", json(true)), json(false)) << where;
  }
  for (const auto& [key, value] : properties.items()) {
    expectTitles(value, where + "/" + key);
  }
  if (schema.contains("items")) {
    expectTitles(schema.at("items"), where + "/[]");
  }
  const json definitions = schema.value("definitions", json::object());
  for (const auto& [key, value] : definitions.items()) {
    expectTitles(value, where + "#" + key);
  }
}

TEST(Schema, HasTitlesAndAllowsNoAdditionalProperties) {
  expectTitles(json::parse(mappingSchema()), "mapping");
  expectTitles(json::parse(hostSchema()), "host");
}

// Editors show it. The title only completes "expected ..." in a message.
void expectDescriptions(const json& root, const json& schema, const std::string& where) {
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, value] : properties.items()) {
    const std::string reference = value.value("$ref", "");
    const json& described =
        reference.empty() ? value : root.at(json::json_pointer(reference.substr(1)));
    EXPECT_TRUE(value.contains("description") || described.contains("description"))
        << where << "/" << key;
    expectDescriptions(root, value, where + "/" + key);
  }
  if (schema.contains("items")) {
    expectDescriptions(root, schema.at("items"), where + "/[]");
  }
  const json definitions = schema.value("definitions", json::object());
  for (const auto& [key, value] : definitions.items()) {
    expectDescriptions(root, value, where + "#" + key);
  }
}

TEST(Schema, DescribesEveryProperty) {
  for (const std::string& text : {mappingSchema(), hostSchema()}) {
    const json schema = json::parse(text);
    expectDescriptions(schema, schema, schema.at("$id"));
  }
}

TEST(Schema, EachExampleNamesItsOwn) {
  const auto examples = std::filesystem::path(VFPASS_SOURCE_DIR) / "examples";
  for (const auto& file : std::filesystem::directory_iterator(examples)) {
    const std::string name = file.path().filename().string();
    const std::string kind = name.starts_with("host") ? "host" : "mapping";
    EXPECT_TRUE(readWhole(file.path())
                    .starts_with("# yaml-language-server: $schema=/usr/share/vfpass/" + kind +
                                 ".schema.json\n"))
        << name;
    EXPECT_TRUE(std::filesystem::exists(schemaFolder / (kind + ".schema.json")));
  }
}

TEST(Schema, ListsTheSameWordsAsTheParsers) {
  const json schema = json::parse(mappingSchema());
  const json& attributes = schema["definitions"]["vf"]["properties"]["required"]["items"]["enum"];
  EXPECT_EQ(attributes.size(), std::size(allAttributes));
  for (const Attribute attribute : allAttributes) {
    EXPECT_THAT(attributes, ::testing::Contains(json(std::string(toString(attribute)))));
  }
  const json& allowances = schema["properties"]["allow"]["items"]["enum"];
  EXPECT_EQ(allowances.size(), 6U);
  for (const auto& name : allowances) {
    EXPECT_TRUE(parseAllowance(name.get<std::string>())) << name;
  }
  const json& vf = schema["definitions"]["vf"]["properties"];
  for (const auto& name : vf["link-state"]["enum"]) {
    EXPECT_TRUE(parseLinkState(name.get<std::string>())) << name;
  }
  for (const auto& name : vf["vlan"]["properties"]["protocol"]["enum"]) {
    EXPECT_TRUE(parseVlanProtocol(name.get<std::string>())) << name;
  }
}

}  // namespace
}  // namespace vfpass::config
