#include "text_values.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "json.hpp"
#include "vfpass/base/text.hpp"

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

Tint tintOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return Tint::good;
    case Outcome::failed:
      return Tint::bad;
    case Outcome::notObservable:
    case Outcome::warning:
      return Tint::warning;
    case Outcome::waived:
      return Tint::muted;
  }
  return Tint::none;
}

std::string wordOf(Outcome outcome) {
  std::string text(toString(outcome));
  std::ranges::replace(text, ' ', '_');
  return text;
}

const Finding* firstBroken(const VerifyReport& report) {
  for (const Outcome outcome : {Outcome::failed, Outcome::notObservable}) {
    const auto found = std::ranges::find(report.findings, outcome, &Finding::outcome);
    if (found != report.findings.end()) {
      return &*found;
    }
  }
  return nullptr;
}

void writeStepReason(std::ostream& out, const std::string& indent, const Step& step,
                     const Style& style, const std::string& because) {
  if (!step.reason.empty()) {
    out << indent << tinted(because + printable(step.reason), Tint::muted, style) << '\n';
  }
  if (step.disrupts) {
    out << indent << tinted("disrupts: may affect other users of the host", Tint::warning, style)
        << '\n';
  }
}

std::string rounded(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  return text.str();
}

// A JSON string is also a YAML string.
std::string yamlString(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string memoryOf(const Figure& figure) {
  return figure.gpu.empty() ? figure.memory : figure.memory + " " + figure.gpu;
}

void writeDiffLines(std::ostream& out, const std::string& diff, const Style& style) {
  for (const std::string& line : splitLines(diff)) {
    const Tint tint = line.starts_with('+')   ? Tint::good
                      : line.starts_with('-') ? Tint::bad
                                              : Tint::none;
    out << tinted(line, tint, style) << '\n';
  }
}

bool isContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

}  // namespace vfpass::report
