#include "vfpass/report/result_report.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

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

}  // namespace vfpass::report
