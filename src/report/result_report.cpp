#include "vfpass/report/result_report.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Json mistakeJson(const Mistake& mistake) {
  return {{"file", mistake.file},
          {"line", mistake.line},
          {"column", mistake.column},
          {"message", mistake.message},
          {"remedy", mistake.remedy}};
}

Json errorJson(const Error& error) {
  return {{"message", error.what()},
          {"remedy", error.remedy()},
          {"exit_code", static_cast<int>(error.code())},
          {"mistakes", listJson(error.mistakes(), mistakeJson)}};
}

// `host apply` has no domain.
Json operationJson(const Plan& plan) {
  return {{"kind", toString(plan.kind)},
          {"domain", plan.domainName.empty() ? Json() : domainJson(plan.domainName, plan.domain)},
          {"steps", stepsJson(plan.steps)},
          {"notes", plan.notes}};
}

Json vmResultJson(const VmResult& vm) {
  return {
      {"vm", vm.vm},           {"uuid", vm.uuid ? Json(toString(*vm.uuid)) : Json()},
      {"begun", vm.begun},     {"exit_code", vm.code ? Json(static_cast<int>(*vm.code)) : Json()},
      {"message", vm.message}, {"result", vm.document.empty() ? Json() : Json::parse(vm.document)}};
}

// In the words of the exit codes in `--help`.
Cell resultCell(const std::string& command, const VmResult& vm) {
  if (!vm.begun) {
    return {"not begun", Tint::muted};
  }
  if (!vm.code) {
    return {"stopped", Tint::warning};
  }
  switch (*vm.code) {
    case ExitCode::done:
      return {command == "verify" ? "passed" : vm.changed ? "done" : "nothing to do", Tint::good};
    case ExitCode::badInput:
      return {"bad configuration", Tint::bad};
    case ExitCode::pending:
      return {"changes pending", Tint::warning};
    case ExitCode::unproven:
      return {"verification failed", Tint::bad};
    case ExitCode::refused:
      return {"refused", Tint::bad};
    case ExitCode::unverified:
      return {"unverified", Tint::warning};
    case ExitCode::failed:
      break;
  }
  return {"failed", Tint::bad};
}

// The first line: the others were printed when the VM failed.
std::string reasonOf(const VmResult& vm) {
  std::string reason = vm.message.substr(0, vm.message.find('\n'));
  if (reason.ends_with(':')) {
    reason.pop_back();
  }
  return reason;
}

void writeAllText(std::ostream& out, const AllResult& result, const Style& style) {
  const bool reasons =
      std::ranges::any_of(result.vms, [](const VmResult& vm) { return !vm.message.empty(); });
  Table table(reasons ? std::vector<std::string>{"VM", "RESULT", "REASON"}
                      : std::vector<std::string>{"VM", "RESULT"});
  std::map<std::string, std::size_t> counts;
  for (const auto& vm : result.vms) {
    const Cell cell = resultCell(result.command, vm);
    table.add({{vm.vm, Tint::none}, cell, {reasonOf(vm), Tint::none}});
    ++counts[cell.text];
  }
  table.write(out, style);
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) {
    parts.push_back(std::to_string(count) + " " + text);
  }
  out << counted(result.vms.size(), "VM") << ": " << join(parts, ", ") << '\n';
}

}  // namespace

void writeResult(std::ostream& out, const Result& result) {
  Json document = newDocument();
  document["command"] = result.command;
  document["changed"] = !result.executed.empty();
  document["operations"] = listJson(result.executed, operationJson);
  document["notes"] = result.notes;
  document["warnings"] = result.warnings;
  if (!result.kept.commands.empty()) {
    document["kept"] = {{"commands", result.kept.commands},
                        {"unit_name", result.kept.unitName},
                        {"unit", result.kept.unit}};
  }
  document["failures"] = listJson(result.failures, errorJson);
  writeDocument(out, document);
}

void writeAll(std::ostream& out, const AllResult& result, const Style& style) {
  if (!style.json) {
    writeAllText(out, result, style);
    return;
  }
  Json document = newDocument();
  document["command"] = result.command;
  document["exit_code"] = static_cast<int>(result.code);
  document["vms"] = listJson(result.vms, vmResultJson);
  document["failures"] = listJson(result.failures, errorJson);
  writeDocument(out, document);
}

void writeError(std::ostream& out, const Error& error) {
  Json document = newDocument();
  document["error"] = errorJson(error);
  writeDocument(out, document);
}

void writeActions(std::ostream& out, const std::vector<std::string>& actions, const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["actions"] = actions;
    writeDocument(out, document);
    return;
  }
  for (const auto& action : actions) {
    out << printable(action) << '\n';
  }
}

namespace {

// --sysroot takes a directory.
std::string readingCommand(const std::string& target) {
  const std::filesystem::path file(target);
  if (file.extension() != ".tar") {
    return "vfpass --sysroot " + shellArgument(target) + " doctor";
  }
  const std::string folder = shellArgument(file.stem().string());
  return "mkdir " + folder + " && tar -C " + folder + " -xf " + shellArgument(target) +
         " && vfpass --sysroot " + folder + " doctor";
}

}  // namespace

void writeSnapshot(std::ostream& out, const SnapshotReport& report, const Style& style) {
  std::size_t total = 0;
  for (const auto& [name, count] : report.files) {
    total += count;
  }
  if (style.json) {
    Json document = newDocument();
    document["target"] = report.target;
    document["links"] = report.links;
    document["devices"] = report.devices;
    document["bytes"] = report.bytes;
    document["files"] = Json::object();
    for (const auto& [name, count] : report.files) {
      document["files"][name] = count;
    }
    writeDocument(out, document);
    return;
  }
  for (const auto& [name, count] : report.files) {
    out << "  " << printable(name) << ' ' << count << '\n';
  }
  out << printable(report.target) << ": " << total << " files, " << report.links << " links, "
      << report.devices << " PCI devices, " << (report.bytes + 1023) / 1024
      << " KiB; read it with `" << readingCommand(report.target) << "`\n";
}

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

Tint resultTint(const PastOperation& past) {
  return past.result == "done"         ? Tint::good
         : past.result == "unverified" ? Tint::warning
                                       : Tint::bad;
}

Json addressesJson(const std::vector<PciAddress>& addresses) {
  return listJson(addresses, [](const auto& address) { return toString(address); });
}

Json pastOperationJson(const PastOperation& past) {
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
    document["operations"] = listJson(operations, pastOperationJson);
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
               {past.result, resultTint(past)},
               {actorText(past)},
               {printableLine(past.message)}});
  }
  table.write(out, style);
}

}  // namespace vfpass::report
