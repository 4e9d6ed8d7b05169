// validate-json SCHEMA [FILE]: validates a document from FILE or stdin against the schema, for
// programs that unit tests cannot run. Exit codes: 0 valid, 1 invalid, 2 error.
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace {

using valijson::adapters::NlohmannJsonAdapter;

nlohmann::json read(std::istream& stream) { return nlohmann::json::parse(stream); }

nlohmann::json readFile(const char* path) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error(std::string("cannot open ") + path);
  }
  return read(file);
}

int validate(const nlohmann::json& rules, const nlohmann::json& document) {
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(NlohmannJsonAdapter(rules), schema);
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema, NlohmannJsonAdapter(document), &results)) {
    return 0;
  }
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const auto& part : error.context) {
      std::cerr << part;
    }
    std::cerr << ": " << error.description << '\n';
  }
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: validate-json SCHEMA [FILE]\n";
    return 2;
  }
  try {
    return validate(readFile(arguments[1]), count == 3 ? readFile(arguments[2]) : read(std::cin));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
