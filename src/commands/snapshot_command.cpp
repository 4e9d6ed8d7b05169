#include <algorithm>
#include <array>
#include <string_view>

#include "commands.hpp"
#include "host_facts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/host/soft_roce_links.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

host::Root recordingRoot(Session& session, host::Recording& recording) {
  host::Root root = session.root();
  root.recordInto(recording);
  return root;
}

// Every reader of commands runs once, so that its files are recorded. Add every new reader of
// --sysroot to this function.
Topology readDevices(Session& session, host::Recording& recording) {
  const report::ProgressWait wait(session.progress(), "reading the devices");
  const Topology topology = inventory::readTopology(recordingRoot(session, recording));
  std::vector<PciAddress> gpus;
  std::set<PciAddress> passable;
  for (const Device& function : topology.functions) {
    if (function.role == FunctionRole::gpu) {
      gpus.push_back(function.address);
    }
    if (function.role == FunctionRole::gpu || isPf(function)) {
      passable.insert(function.address);
    }
  }
  static_cast<void>(inventory::readInventory(recordingRoot(session, recording), gpus));
  static_cast<void>(inventory::readCapacity(recordingRoot(session, recording), topology, passable));
  static_cast<void>(
      host::readRdmaLinks(recordingRoot(session, recording), deadlines::snapshotRdma));
  return topology;
}

// The snapshot says it itself as well, without the reason: it can name hosts and paths.
void noteSilence(Session& session, const Error& error,
                 std::map<std::string, std::string>& answers) {
  answers[doctor::versionsNotObserved] = "libvirt did not answer when this snapshot was taken";
  session.warn("the snapshot lacks the versions of libvirt and QEMU: " + withRemedy(error) +
               "; then take it again");
}

// Runs everything that can read a captured tree and records what it reads.
capture::CapturedTree capture(Session& session) {
  host::Recording recording(std::filesystem::canonical(session.options().sysroot).string());
  const Topology topology = readDevices(session, recording);
  // doctor's checks, and the answers that no file holds.
  std::map<std::string, std::string> answers;
  doctor::Inquiries inquiries =
      inquiriesOf(session, [&](const Error& error) { noteSilence(session, error, answers); });
  inquiries.answers = &answers;
  static_cast<void>(doctor::examine(recordingRoot(session, recording), topology,
                                    doctor::requireEverything(topology), inquiries));
  session.progress().end();
  capture::CapturedTree tree = capture::keptOf(recording);
  for (const auto& [name, answer] : answers) {
    tree["vfpass/" + name] = {host::RecordedEntry::Kind::file, answer + "\n"};
  }
  tree.erase("vfpass/vfio-users");  // contains names of VMs, which a snapshot must not have
  return tree;
}

bool isTar(const std::filesystem::path& target) { return target.extension() == ".tar"; }

// Otherwise `snapshot host.tar.gz` would create a folder with this name.
void requireNoCompression(const std::filesystem::path& target) {
  constexpr std::array<std::string_view, 4> archives{".tgz", ".txz", ".tzst", ".zip"};
  const std::string suffix = target.extension().string();
  if (isTar(target.stem()) || std::ranges::find(archives, suffix) != archives.end()) {
    throw Error("snapshot: " + printable(target.string()) +
                    " would be compressed, and a snapshot is a directory or an uncompressed .tar",
                "specify a name that ends in .tar, and compress this file", ExitCode::badInput);
  }
}

report::SnapshotReport describeTree(const capture::CapturedTree& tree,
                                    const std::filesystem::path& target) {
  report::SnapshotReport report;
  report.target = target.string();
  for (const auto& [path, entry] : tree) {
    if (entry.kind == host::RecordedEntry::Kind::file) {
      report.files[path.substr(path.rfind('/') + 1)] += 1;
      report.bytes += entry.content.size();
    } else if (entry.kind == host::RecordedEntry::Kind::link) {
      ++report.links;
      report.devices += path.starts_with("sys/bus/pci/devices/") ? 1 : 0;
    }
  }
  if (isTar(target)) {
    report.bytes = std::filesystem::file_size(target);
  }
  return report;
}

void write(Session& session, const capture::CapturedTree& tree,
           const std::filesystem::path& target) {
  const report::ProgressWait wait(session.progress(), "writing " + target.string());
  if (isTar(target)) {
    capture::writeTar(tree, target);
  } else {
    capture::writeFolder(tree, target);
  }
}

ExitCode snapshot(Session& session, const std::filesystem::path& target) {
  requireNoCompression(target);
  const capture::CapturedTree tree = capture(session);
  write(session, tree, target);
  for (const auto& [path, entry] : tree) {
    session.verbose(printable(path));
  }
  const auto description = describeTree(tree, target);
  report::writeSnapshot(session.out(), description, session.style());
  return ExitCode::done;
}

}  // namespace

void addSnapshot(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "snapshot", "Capture what vfpass reads of this host, for --sysroot on any machine");
  const auto target = std::make_shared<std::filesystem::path>();
  command
      ->add_option("target", *target,
                   "New directory, or new file with the suffix .tar; -v lists the captured files")
      ->type_name("FILE")
      ->required();
  command->callback([&runner, target] {
    runner = [target](Session& session) { return snapshot(session, *target); };
  });
}

}  // namespace vfpass::commands
