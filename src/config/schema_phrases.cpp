#include "schema_phrases.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

using nlohmann::json;

constexpr std::size_t mostKeysCompared = 50;
constexpr std::size_t mostKeysListed = 40;

// Follows `$ref`s, which point into the same file.
SchemaView resolve(SchemaView view) {
  while (view.part != nullptr && view.part->contains("$ref")) {
    const auto reference = view.part->at("$ref").get<std::string>();
    view.part = &view.whole->at(json::json_pointer(reference.substr(1)));
  }
  return view;
}

void collectChoices(const json& schema, std::vector<std::string>& choices) {
  for (const auto& choice : schema.value("enum", json::array())) {
    if (choice.is_string()) {
      choices.push_back(choice.get<std::string>());
    }
  }
  for (const auto& alternative : schema.value("anyOf", json::array())) {
    collectChoices(alternative, choices);
  }
}

bool accepts(const json& schema, const std::string& type) {
  if (schema.value("type", "") == type) {
    return true;
  }
  const auto alternatives = schema.value("anyOf", json::array());
  return std::ranges::any_of(alternatives,
                             [&](const json& alternative) { return accepts(alternative, type); });
}

std::string hintFor(const Node& node, const json& schema) {
  const bool bare = node.kind == NodeKind::integer || node.kind == NodeKind::number ||
                    node.kind == NodeKind::boolean;
  if (bare && accepts(schema, "string")) {
    return "if this is intended, put it in quotes";
  }
  const bool wantsNumber = accepts(schema, "integer") || accepts(schema, "boolean");
  if (node.quoted && wantsNumber && !node.text.empty()) {
    return "write it without quotes";
  }
  std::vector<std::string> choices;
  collectChoices(schema, choices);
  return node.kind == NodeKind::text ? suggestion(node.text, choices) : std::string{};
}

std::vector<std::string> knownKeys(const SchemaView& schema) {
  std::vector<std::string> keys;
  const json properties = schema.part->value("properties", json::object());
  for (const auto& [key, value] : properties.items()) {
    keys.push_back(key);
  }
  return keys;
}

// True if the block has an unknown key that is probably a misspelling of this one, which is then
// already reported there.
bool isMisspelt(const Node& node, const SchemaView& schema, const std::string& key) {
  const std::vector<std::string> known = knownKeys(schema);
  const std::size_t looked = std::min(node.keys.size(), mostKeysCompared);
  return std::ranges::any_of(std::span(node.keys).first(looked), [&](const auto& written) {
    return schema.property(written.text).part == nullptr &&
           suggestion(written.text, known) == suggestion(key, known);
  });
}

// The keys of which a block needs at least one; empty if its `anyOf` is not about required keys.
std::vector<std::string> alternativeKeys(const SchemaView& schema) {
  std::vector<std::string> keys;
  const json alternatives =
      schema.part == nullptr ? json::array() : schema.part->value("anyOf", json::array());
  for (const auto& alternative : alternatives) {
    for (const auto& key : alternative.value("required", json::array())) {
      keys.push_back(key.get<std::string>());
    }
  }
  return keys;
}

void reportMissingAlternative(Node& node, const SchemaView& schema, ProblemList& problems) {
  const std::vector<std::string> keys = alternativeKeys(schema);
  const auto misspelt = [&](const std::string& key) { return isMisspelt(node, schema, key); };
  if (std::ranges::none_of(keys, misspelt)) {
    problems.add(
        node.position,
        "`" + keys.front() + "` is missing: expected " + schema.property(keys.front()).title(),
        "or specify one of: " + join({keys.begin() + 1, keys.end()}, ", "));
  }
}

}  // namespace

SchemaView SchemaView::property(const std::string& key) const {
  const json* properties =
      part != nullptr && part->contains("properties") ? &part->at("properties") : nullptr;
  const bool known = properties != nullptr && properties->contains(key);
  return resolve({whole, known ? &properties->at(key) : nullptr});
}

SchemaView SchemaView::entries() const {
  const bool known = part != nullptr && part->contains("items");
  return resolve({whole, known ? &part->at("items") : nullptr});
}

std::string SchemaView::title() const {
  return part == nullptr ? "something else" : part->value("title", "something else");
}

void reportValue(Node& node, const SchemaView& schema, ProblemList& problems) {
  if (node.kind == NodeKind::block && !alternativeKeys(schema).empty()) {
    return reportMissingAlternative(node, schema, problems);
  }
  problems.refuse(node, "expected " + schema.title() + ", found " + describe(node),
                  schema.part == nullptr ? std::string{} : hintFor(node, *schema.part));
}

void reportUnknownKeys(Node& node, const SchemaView& schema, ProblemList& problems) {
  const std::vector<std::string> known = knownKeys(schema);
  for (const auto& key : node.keys) {
    if (schema.property(key.text).part != nullptr) {
      continue;
    }
    std::string hint = problems.full() ? std::string{} : suggestion(key.text, known);
    if (hint.empty()) {
      hint = known.size() > mostKeysListed ? "expected " + schema.title()
                                           : "known here: " + join(known, ", ");
    }
    problems.add(key.position, "unknown key " + quoteForMessage(key.text), hint);
  }
}

void reportMissingKeys(Node& node, const SchemaView& schema, ProblemList& problems) {
  for (const auto& required : schema.part->value("required", json::array())) {
    const auto key = required.get<std::string>();
    if (find(node, key) == nullptr && !isMisspelt(node, schema, key)) {
      problems.add(node.position,
                   "`" + key + "` is missing: expected " + schema.property(key).title());
    }
  }
}

void reportRepeatedEntries(Node& node, ProblemList& problems) {
  std::set<std::string> seen;
  for (auto& item : node.items) {
    if (!seen.insert(item.text).second) {
      problems.refuse(item, describe(item) + " is listed twice", "remove one of them");
    }
  }
}

}  // namespace vfpass::config
