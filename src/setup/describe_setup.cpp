#include "vfpass/setup/describe_setup.hpp"

#include "vfpass/base/unified_diff.hpp"

namespace vfpass::setup {
namespace {

std::string octal(unsigned mode) {
  std::string text = "0";
  for (int shift = 6; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  }
  return text;
}

// Marks a missing final newline as diff does; otherwise no line would show that change.
std::string lines(const FileState& file) {
  return file.content.empty() || file.content.ends_with('\n')
             ? file.content
             : file.content + "\n\\ No newline at end of file\n";
}

GuestFileChange describe(const SetupFile& file) {
  const bool stays = file.before.exists && file.after.exists;
  return {file.path,
          file.reason,
          file.before.exists,
          file.after.exists,
          stays && file.before.mode != file.after.mode
              ? octal(file.before.mode) + " -> " + octal(file.after.mode)
              : "",
          unifiedDiff(lines(file.before), lines(file.after))};
}

}  // namespace

GuestSetupReport describeSetup(const SetupPlan& plan) {
  GuestSetupReport report;
  report.undo = plan.undo;
  report.tool = plan.tool;
  report.notes = plan.notes;
  for (const SetupFile& file : plan.files) {
    report.files.push_back(describe(file));
  }
  for (const SetupPort& port : plan.ports) {
    report.ports.push_back({port.entry, port.netdev, describeChanges(port)});
  }
  if (plan.loadPeerMemory) {
    report.actions.emplace_back("load nvidia_peermem");
  }
  if (plan.unloadPeerMemory) {
    report.actions.emplace_back("unload nvidia_peermem");
  }
  if (plan.undo && plan.recordBefore.exists) {
    report.actions.emplace_back(std::string("remove ") + recordFolder);
  }
  return report;
}

}  // namespace vfpass::setup
