#include "json.hpp"

#include <ostream>

#include "vfpass/report/style.hpp"

namespace vfpass::report {
namespace {

template <typename Value>
Json spelled(const std::optional<Value>& value) {
  return value ? Json(std::string(toString(*value))) : Json();
}

Json vlanJson(const std::optional<Vlan>& vlan) {
  if (!vlan) {
    return {};
  }
  return {{"id", vlan->id}, {"qos", vlan->qos}, {"protocol", toString(vlan->protocol)}};
}

Json rateJson(const std::optional<Rate>& rate) {
  if (!rate) {
    return {};
  }
  return {{"min", rate->min}, {"max", rate->max}};
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

Json settingsJson(const VfSettings& settings) {
  return {{"mac", spelled(settings.mac)},
          {"vlan", vlanJson(settings.vlan)},
          {"rate", rateJson(settings.rate)},
          {"spoof_check", valueOrNull(settings.spoofCheck)},
          {"link_state", spelled(settings.linkState)},
          {"trust", valueOrNull(settings.trust)},
          {"node_guid", spelled(settings.nodeGuid)},
          {"port_guid", spelled(settings.portGuid)}};
}

}  // namespace vfpass::report
