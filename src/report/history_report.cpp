#include "vfpass/report/command_reports.hpp"

#include <ctime>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

using events::PastOperation;

std::string timeText(const PastOperation& past, const char* format) {
  const std::time_t time = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(past.time));
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, format);
  return text.str();
}

// A service runs without a user; root without both comes from a process that no login started.
std::string actorText(const PastOperation& past) {
  return !past.user.empty() ? past.user : !past.unit.empty() ? past.unit : "root";
}

Tint tintOf(const PastOperation& past) {
  return past.result == "done"         ? Tint::good
         : past.result == "unverified" ? Tint::warning
                                       : Tint::bad;
}

Json addressesJson(const std::vector<PciAddress>& addresses) {
  return listJson(addresses, [](const auto& address) { return toString(address); });
}

Json operationJson(const PastOperation& past) {
  return {{"time", timeText(past, "%Y-%m-%dT%H:%M:%SZ")},
          {"operation", past.operation},
          {"result", past.result},
          {"vm", textOrNull(past.vm)},
          {"vm_uuid", textOrNull(past.vmUuid)},
          {"pfs", addressesJson(past.pfs)},
          {"vfs", addressesJson(past.vfs)},
          {"functions", addressesJson(past.functions)},
          {"user", textOrNull(past.user)},
          {"user_id", valueOrNull(past.userId)},
          {"unit", textOrNull(past.unit)},
          {"message", past.message},
          {"remedy", textOrNull(past.remedy)},
          {"message_id", past.messageId}};
}

}  // namespace

void writeHistory(std::ostream& out, const std::vector<PastOperation>& operations,
                  const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["operations"] = listJson(operations, operationJson);
    writeDocument(out, document);
    return;
  }
  if (operations.empty()) {
    out << "no operations\n";
    return;
  }
  // In this form, journalctl and --since accept the time.
  Table table({"TIME", "VM", "OPERATION", "RESULT", "BY", "MESSAGE"});
  for (const auto& past : operations) {
    table.add({{timeText(past, "%Y-%m-%d %H:%M:%S UTC")},
               {textOrNothing(past.vm)},
               {past.operation},
               {past.result, tintOf(past)},
               {actorText(past)},
               {printableLine(past.message)}});
  }
  table.write(out, style);
}

}  // namespace vfpass::report
