#include "golden.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace vfpass::report {
namespace {

using valijson::adapters::NlohmannJsonAdapter;

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return file ? content.str() : "(missing: " + path + ")";
}

bool regenerating() {
  const char* value = std::getenv("VFPASS_REGENERATE");
  return value != nullptr && std::string(value) == "1";
}

std::string describeErrors(valijson::ValidationResults& results) {
  std::string text;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const auto& part : error.context) {
      text += part;
    }
    text += ": " + error.description + "\n";
  }
  return text;
}

}  // namespace

void expectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(VFPASS_SOURCE_DIR) + "/tests/unit/report/golden/" + name;
  if (regenerating()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(readFile(path), text) << "VFPASS_REGENERATE=1 rewrites " << path;
}

void expectValid(const std::string& schema, const std::string& text) {
  const auto rules = nlohmann::json::parse(
      readFile(std::string(VFPASS_SOURCE_DIR) + "/docs/json/" + schema + ".schema.json"));
  valijson::Schema parsed;
  valijson::SchemaParser().populateSchema(NlohmannJsonAdapter(rules), parsed);
  const auto document = nlohmann::json::parse(text);
  valijson::ValidationResults results;
  valijson::Validator validator;
  EXPECT_TRUE(validator.validate(parsed, NlohmannJsonAdapter(document), &results))
      << describeErrors(results);
  EXPECT_EQ(nlohmann::ordered_json::parse(text).begin().key(), "schema_version");
}

}  // namespace vfpass::report
