#include "json.hpp"

#include <algorithm>
#include <ostream>

#include "vfpass/report/style.hpp"

namespace vfpass::report {
namespace {

Json valueJson(bool value) { return value; }
Json valueJson(const Vlan& vlan) {
  return {{"id", vlan.id}, {"qos", vlan.qos}, {"protocol", toString(vlan.protocol)}};
}
Json valueJson(const Rate& rate) { return {{"min", rate.min}, {"max", rate.max}}; }

template <typename Value>
Json valueJson(const Value& value) {
  return std::string(toString(value));
}

// Keys of JSON output are written with underscores.
std::string keyOf(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
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

Json settingsJson(const VfSettings& settings) {
  Json json = Json::object();
  forEachAttribute([&](const auto& row) {
    const auto& value = settings.*row.member;
    json[keyOf(row.name)] = value ? valueJson(*value) : Json();
  });
  return json;
}

}  // namespace vfpass::report
