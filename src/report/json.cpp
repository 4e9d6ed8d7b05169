#include "json.hpp"

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <concepts>
#include <ostream>

#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Json valueJson(bool value) { return value; }
Json valueJson(const Vlan& vlan) {
  return {{"id", vlan.id}, {"qos", vlan.qos}, {"protocol", toString(vlan.protocol)}};
}
Json valueJson(const Rate& rate) { return {{"min", rate.min}, {"max", rate.max}}; }

template <typename Value>
Json valueJson(const Value& value) {
  if constexpr (std::unsigned_integral<Value>) {
    return value;
  } else {
    return std::string(toString(value));
  }
}

// Keys of JSON output are written with underscores.
std::string keyOf(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

constexpr unsigned indentation = 2;  // as in writeDocument()
constexpr std::size_t longText = 65536;

bool isPrintableAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

rapidjson::SizeType sizeOf(std::string_view text) {
  return static_cast<rapidjson::SizeType>(text.size());
}

}  // namespace

Json newDocument() { return {{"schema_version", schemaVersion}}; }

void writeDocument(std::ostream& out, const Json& document) {
  out << document.dump(2, ' ', true, Json::error_handler_t::replace) << '\n';
}

Json textOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json domainJson(const std::string& name, const Uuid& uuid) {
  return {{"name", name}, {"uuid", toString(uuid)}};
}

Json leaseJson(const Lease* lease) {
  if (lease == nullptr) {
    return {};
  }
  return {{"domain", domainJson(lease->domainName, lease->domain)},
          {"entry", lease->entry},
          {"state", toString(lease->state)}};
}

Json stepsJson(const std::vector<Step>& steps) {
  return listJson(steps, [](const auto& step) -> Json {
    return {
        {"action", describe(step.action)}, {"reason", step.reason}, {"disrupts", step.disrupts}};
  });
}

Json settingsJson(const VfSettings& settings) {
  Json json = Json::object();
  forEachAttribute([&](const auto& row) {
    const auto& value = settings.*row.member;
    json[keyOf(row.name)] = value ? valueJson(*value) : Json();
  });
  return json;
}

/// RapidJSON writes values one after another, which nlohmann-json cannot do.
class DocumentWriter::Text {
 public:
  Text() { writer_.SetIndent(' ', indentation); }

  void beginObject() { writer_.StartObject(); }
  void endObject() { writer_.EndObject(); }
  void beginArray() { writer_.StartArray(); }
  void endArray() { writer_.EndArray(); }
  void key(std::string_view key) { writer_.Key(key.data(), sizeOf(key)); }
  void null() { writer_.Null(); }
  void number(std::uint64_t number) { writer_.Uint64(number); }

  // RapidJSON would stop at bytes that are not UTF-8; writeDocument() replaces them.
  void string(std::string_view text) {
    if (isPrintableAscii(text)) {
      writer_.String(text.data(), sizeOf(text));
    } else {
      const std::string escaped = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
      writer_.RawValue(escaped.data(), escaped.size(), rapidjson::kStringType);
    }
  }

  void json(const Json& json) {
    if (json.is_object()) {
      beginObject();
      for (const auto& [name, member] : json.items()) {
        key(name);
        this->json(member);
      }
      endObject();
    } else if (json.is_array()) {
      beginArray();
      for (const auto& element : json) {
        this->json(element);
      }
      endArray();
    } else if (json.is_string()) {
      string(json.get_ref<const std::string&>());
    } else {
      const std::string scalar = json.dump();
      writer_.RawValue(scalar.data(), scalar.size(), rapidjson::kNumberType);
    }
  }

  [[nodiscard]] bool isLong() const { return buffer_.GetSize() > longText; }

  void flush(std::ostream& out) {
    out.write(buffer_.GetString(), static_cast<std::streamsize>(buffer_.GetSize()));
    buffer_.Clear();
  }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

DocumentWriter::DocumentWriter(std::ostream& out) : out_(out), text_(std::make_unique<Text>()) {
  text_->beginObject();
  number("schema_version", schemaVersion);
}

DocumentWriter::~DocumentWriter() {
  text_->endObject();
  text_->flush(out_);
  out_ << '\n';
}

void DocumentWriter::text(std::string_view key, std::string_view text) {
  text_->key(key);
  text_->string(text);
}

void DocumentWriter::textOrNull(std::string_view key, std::string_view text) {
  text_->key(key);
  text.empty() ? text_->null() : text_->string(text);
}

void DocumentWriter::number(std::string_view key, std::uint64_t number) {
  text_->key(key);
  text_->number(number);
}

void DocumentWriter::value(std::string_view key, const Json& value) {
  text_->key(key);
  text_->json(value);
}

void DocumentWriter::beginList(std::string_view key) {
  text_->key(key);
  text_->beginArray();
}

void DocumentWriter::beginElement() { text_->beginObject(); }

void DocumentWriter::endElement() {
  text_->endObject();
  if (text_->isLong()) {
    text_->flush(out_);
  }
}

void DocumentWriter::endList() { text_->endArray(); }

}  // namespace vfpass::report
