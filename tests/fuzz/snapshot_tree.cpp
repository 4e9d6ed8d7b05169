// A snapshot of another host, extracted: the tree that `--sysroot` reads. One entry per line: f, l
// or d, the path, and after `=` the content or the target, with bytes as %NN.
// covers: src/doctor/capture/captured_tree.cpp src/host/inventory/read_topology.cpp
// src/host/inventory/read_pci_function.cpp src/host/inventory/read_inventory.cpp -writeFolder
// -requireOwn
#include <algorithm>
#include <set>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/inventory/read_inventory.hpp"

namespace vfpass::fuzz {
namespace {

namespace fs = std::filesystem;
using Kind = host::RecordedEntry::Kind;

std::string decoded(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const bool coded = text.front() == '%' && text.size() > 2;
    const auto byte = coded ? parseNumber(text.substr(1, 2), 16) : std::nullopt;
    bytes += byte ? static_cast<char>(static_cast<unsigned char>(*byte)) : text.front();
    text.remove_prefix(byte ? 3 : 1);
  }
  return bytes;
}

bool isInside(const fs::path& path) {
  return path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& name) { return name == ".."; });
}

// As an archiver does: never through a link, which can lead to the files of this machine. An entry
// that conflicts with an earlier one is left out.
void extract(std::string_view line, const capture::CapturedFolder& tree) {
  const auto end = std::min(line.find('='), line.size());
  const std::string path = decoded(line.substr(1, end - 1));
  std::string content = decoded(line.substr(std::min(end + 1, line.size())));
  if (path.find('\0') != std::string::npos) {
    return;
  }
  const auto kind = line.front() == 'l'   ? Kind::link
                    : line.front() == 'd' ? Kind::directory
                                          : Kind::file;
  content.resize(kind == Kind::link ? std::min(content.find('\0'), content.size())
                                    : content.size());
  accepted([&] {
    tree.write(path, {kind, content});
    return true;
  });
}

void checkRecording(const host::Recording& recording) {
  for (const auto& [path, entry] : capture::keptOf(recording)) {
    require(!path.empty() && isInside(path), "a snapshot has only paths below its folder");
  }
}

void readAll(const fs::path& folder) {
  host::Recording recording(fs::canonical(folder).native());
  host::Root root(folder);
  root.recordInto(recording);
  const Topology topology = inventory::readTopology(root);
  for (const auto& function : topology.functions) {
    require(
        !function.physicalFunction || findFunction(topology, *function.physicalFunction) != nullptr,
        "the PF of a VF is a function");
  }
  std::set<PciAddress> functions;
  for (const auto& function : topology.functions) {
    functions.insert(function.address);
  }
  const auto capacity = inventory::readCapacity(root, topology, functions);
  require(capacity.addressBits <= 64, "an address has at most 64 bits");
  require(capacity.nodes.size() <= topology.processors.nodes.size(), "memory is that of a node");
  inventory::readInventory(host::Root(folder));
  inventory::readVfList(host::Root(folder));
  const auto requirements = doctor::requireEverything(topology);
  require(!doctor::examine(root, topology, requirements).empty(), "every check has a finding");
  checkRecording(recording);
}

}  // namespace

void runTarget(std::string_view input) {
  constexpr std::size_t most = 400;
  const fake::TemporaryFolder folder(fastFolder());
  const capture::CapturedFolder tree(folder.path());
  auto lines = splitLines(input);
  lines.resize(std::min(lines.size(), most));
  for (const std::string& line : lines) {
    if (!line.empty()) {
      extract(line, tree);
    }
  }
  require(accepted([&] {
            const capture::CapturedFolder again(folder.path());
            return true;
          }).has_value() == fs::is_empty(folder.path()),
          "a snapshot is written only into an empty directory");
  accepted([&] {
    readAll(folder.path());
    return true;
  });
}

}  // namespace vfpass::fuzz
