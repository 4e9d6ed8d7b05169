#include <ostream>

#include "json.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::report {
namespace {

Json quarantinedJson(const QuarantinedDevice& device) {
  return {{"device", toString(device.device)}, {"since", device.since}, {"reason", device.reason}};
}

}  // namespace

void writeQuarantine(std::ostream& out, const std::vector<QuarantinedDevice>& devices,
                     const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["devices"] = listJson(devices, quarantinedJson);
    writeDocument(out, document);
    return;
  }
  if (devices.empty()) {
    out << "no device is in quarantine\n";
    return;
  }
  Table table({"DEVICE", "SINCE", "REASON"});
  for (const QuarantinedDevice& device : devices) {
    table.add({{toString(device.device), Tint::bad}, {device.since}, {device.reason}});
  }
  table.write(out, style);
}

}  // namespace vfpass::report
