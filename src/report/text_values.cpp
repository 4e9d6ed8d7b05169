#include "text_values.hpp"

namespace vfpass::report {

std::string textOrNothing(const std::string& text) { return text.empty() ? nothing : text; }

std::string onOff(const std::optional<bool>& value) {
  return !value ? notObservable : *value ? "on" : "off";
}

std::string vlanText(const std::optional<Vlan>& vlan) {
  if (!vlan) {
    return notObservable;
  }
  if (vlan->id == 0 && vlan->qos == 0) {
    return nothing;
  }
  std::string text = std::to_string(vlan->id);
  if (vlan->qos != 0) {
    text += " qos " + std::to_string(vlan->qos);
  }
  if (vlan->protocol != VlanProtocol::dot1q) {
    text += " " + std::string(toString(vlan->protocol));
  }
  return text;
}

std::string linkText(const std::optional<LinkState>& state) {
  return state ? std::string(toString(*state)) : notObservable;
}

std::string hardwareAddress(const VfSettings& settings, bool infiniband) {
  if (infiniband) {
    return settings.portGuid ? toString(*settings.portGuid) : notObservable;
  }
  return settings.mac ? toString(*settings.mac) : notObservable;
}

}  // namespace vfpass::report
