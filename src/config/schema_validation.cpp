#include "schema_validation.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

/// The schema of one value, and the whole schema that its references point into.
struct SchemaView {
  const nlohmann::json* whole = nullptr;
  const nlohmann::json* part = nullptr;

  /// Schema of a block's key or of a list's entries; `part` is nullptr if there is none.
  [[nodiscard]] SchemaView property(const std::string& key) const;
  [[nodiscard]] SchemaView entries() const;
  /// Phrase that completes "expected ...".
  [[nodiscard]] std::string title() const;
};

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

SchemaView SchemaView::property(const std::string& key) const {
  if (part != nullptr && part->contains("properties") && part->at("properties").contains(key)) {
    return resolve({whole, &part->at("properties").at(key)});
  }
  if (part != nullptr && part->contains("patternProperties")) {
    for (const auto& [pattern, schema] : part->at("patternProperties").items()) {
      if (std::regex_search(key, std::regex(pattern))) {
        return resolve({whole, &schema});
      }
    }
  }
  return {whole, nullptr};
}

SchemaView SchemaView::entries() const {
  const bool known = part != nullptr && part->contains("items");
  return resolve({whole, known ? &part->at("items") : nullptr});
}

std::string SchemaView::title() const {
  return part == nullptr ? "something else" : part->value("title", "something else");
}

/// Reports a value that its schema does not accept.
void reportValue(Node& node, const SchemaView& schema, ProblemList& problems) {
  if (node.kind == NodeKind::block && !alternativeKeys(schema).empty()) {
    return reportMissingAlternative(node, schema, problems);
  }
  problems.refuse(node, "expected " + schema.title() + ", found " + describe(node),
                  schema.part == nullptr ? std::string{} : hintFor(node, *schema.part));
}

/// Reports every key of a block that the schema does not define, and marks its value.
void reportUnknownKeys(Node& node, const SchemaView& schema, ProblemList& problems) {
  const std::vector<std::string> known = knownKeys(schema);
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const auto& key = node.keys[i];
    if (schema.property(key.text).part != nullptr) {
      continue;
    }
    node.items[i].refused = true;
    std::string hint = problems.full() ? std::string{} : suggestion(key.text, known);
    if (hint.empty()) {
      hint = known.size() > mostKeysListed ? "expected " + schema.title()
                                           : "known here: " + join(known, ", ");
    }
    problems.add(key.position, "unknown key " + quoteForMessage(key.text), hint);
  }
}

/// Reports every required key that the block lacks.
void reportMissingKeys(Node& node, const SchemaView& schema, ProblemList& problems) {
  for (const auto& required : schema.part->value("required", json::array())) {
    const auto key = required.get<std::string>();
    if (find(node, key) == nullptr && !isMisspelt(node, schema, key)) {
      problems.add(node.position,
                   "`" + key + "` is missing: expected " + schema.property(key).title());
    }
  }
}

/// Reports every entry that occurs more than once in a list.
void reportRepeatedEntries(Node& node, ProblemList& problems) {
  std::set<std::string> seen;
  for (auto& item : node.items) {
    if (!seen.insert(item.text).second) {
      problems.refuse(item, describe(item) + " is listed twice", "remove one of them");
    }
  }
}

using nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

json toJson(const Node& node) {
  switch (node.kind) {
    case NodeKind::null:
      return nullptr;
    case NodeKind::boolean:
      return node.boolean;
    case NodeKind::integer:
      return node.integer;
    case NodeKind::number:
      return node.number;
    case NodeKind::text:
      return node.text;
    default:
      break;
  }
  json container = node.kind == NodeKind::list ? json::array() : json::object();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (node.kind == NodeKind::list) {
      container.push_back(toJson(node.items[i]));
    } else {
      container[node.keys[i].text] = toJson(node.items[i]);
    }
  }
  return container;
}

struct Place {
  Node* node = nullptr;
  SchemaView schema;
};

// valijson names a value's place `<root>`, `[vfs]`, `[0]`, `[vlan]`, and since 1.1 a key
// `["vlan"]`. A key that itself has quotes is no place in either form: no schema knows it, so that
// its block is the place.
std::string_view keyOrIndex(std::string_view token) {
  token = token.substr(1, token.size() - 2);
  const bool quoted = token.size() > 1 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token;
}

Place follow(const std::vector<std::string>& context, Place place) {
  for (std::size_t i = 1; i < context.size() && place.node != nullptr; ++i) {
    const std::string token{keyOrIndex(context[i])};
    if (place.node->kind == NodeKind::list) {
      std::size_t index = place.node->items.size();
      std::from_chars(token.data(), token.data() + token.size(), index);
      const bool inside = index < place.node->items.size();
      place = {inside ? &place.node->items[index] : nullptr, place.schema.entries()};
    } else {
      place = {find(*place.node, token), place.schema.property(token)};
    }
  }
  return place;
}

enum class Mistake { inherited, missingKey, unknownKey, repeatedEntry, value };

// valijson gives the kind of a mistake only as text. Each wrong value also makes it report the
// value's parents (`inherited`); those errors are ignored.
Mistake classify(std::string_view description) {
  static constexpr std::pair<std::string_view, Mistake> kinds[] = {
      {"Failed to validate against schema associated with", Mistake::inherited},
      {"Failed to validate item", Mistake::inherited},
      {"Missing required property", Mistake::missingKey},
      {"Object contains a property", Mistake::unknownKey},
      {"Elements at indexes", Mistake::repeatedEntry}};
  for (const auto& [beginning, mistake] : kinds) {
    if (description.starts_with(beginning)) {
      return mistake;
    }
  }
  return Mistake::value;
}

void report(Mistake mistake, const Place& place, ProblemList& problems) {
  switch (mistake) {
    case Mistake::missingKey:
      return reportMissingKeys(*place.node, place.schema, problems);
    case Mistake::unknownKey:
      return reportUnknownKeys(*place.node, place.schema, problems);
    case Mistake::repeatedEntry:
      return reportRepeatedEntries(*place.node, problems);
    case Mistake::value:
      return reportValue(*place.node, place.schema, problems);
    case Mistake::inherited:
      return;
  }
}

}  // namespace

struct SchemaValidator::Implementation {
  json text;
  valijson::Schema schema;
  /// Keeps the compiled patterns of the schema: compiling them takes as long as all else.
  valijson::Validator validator{valijson::Validator::kStrongTypes};
};

SchemaValidator::SchemaValidator(const std::string& schemaText)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->text = json::parse(schemaText);
  valijson::SchemaParser parser;
  parser.populateSchema(Adapter(implementation_->text), implementation_->schema);
}

SchemaValidator::~SchemaValidator() = default;

void SchemaValidator::validate(Node& root, ProblemList& problems) const {
  const json document = toJson(root);
  valijson::ValidationResults results;
  if (implementation_->validator.validate(implementation_->schema, Adapter(document), &results)) {
    return;
  }
  const Place start{&root, {&implementation_->text, &implementation_->text}};
  std::set<std::pair<const Node*, Mistake>> reported;
  for (const auto& error : results) {
    const Place place = follow(error.context, start);
    const Mistake mistake = classify(error.description);
    if (place.node != nullptr && reported.insert({place.node, mistake}).second) {
      report(mistake, place, problems);
    }
  }
  if (problems.empty()) {
    problems.add(root.position, "the file does not match the schema");
  }
}

std::vector<std::string> SchemaValidator::listedKeys(const std::string& pointer) const {
  const json& text = implementation_->text;
  return knownKeys({&text, &text.at(json::json_pointer(pointer))});
}

}  // namespace vfpass::config
