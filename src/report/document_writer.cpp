#include "document_writer.hpp"

#include <string_view>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

DocumentWriter::DocumentWriter(std::ostream& out) : out_(out) {
  out_ << "{\n  \"schema_version\": " << schemaVersion;
}

DocumentWriter::~DocumentWriter() { out_ << "\n}\n"; }

void DocumentWriter::begin(const std::string& key) { out_ << ",\n  " << Json(key).dump() << ": "; }

void DocumentWriter::member(const std::string& key, const Json& value) {
  begin(key);
  write(value, 2);
}

// Line breaks in strings are escaped, so each one in the text ends a line of its layout.
void DocumentWriter::write(const Json& value, unsigned indent) {
  const std::string text = value.dump(2, ' ', true, Json::error_handler_t::replace);
  const std::string margin(indent, ' ');
  std::string_view rest = text;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
    out_ << rest.substr(0, end + 1) << margin;
    rest.remove_prefix(end + 1);
  }
  out_ << rest;
}

}  // namespace vfpass::report
