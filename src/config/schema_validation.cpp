#include "schema_validation.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "schema_phrases.hpp"

namespace vfpass::config {
namespace {

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

// valijson names a value's place `<root>`, `[vfs]`, `[0]`, `[vlan]`.
Place follow(const std::vector<std::string>& context, Place place) {
  for (std::size_t i = 1; i < context.size() && place.node != nullptr; ++i) {
    const std::string token = context[i].substr(1, context[i].size() - 2);
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

// valijson 1.0 gives the kind of a mistake only as text. Each wrong value also makes it report the
// value's parents (`inherited`); those errors are ignored.
Mistake classify(std::string_view description) {
  static constexpr std::pair<std::string_view, Mistake> kinds[] = {
      {"Failed to validate against schema associated with property", Mistake::inherited},
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

}  // namespace vfpass::config
