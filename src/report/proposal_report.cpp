#include "vfpass/report/command_reports.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "topology_words.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

bool isInfiniband(const Device& pf) { return linkTypeOf(pf) == LinkLayer::infiniband; }

class ProposalWriter {
 public:
  ProposalWriter(std::ostream& out, const ProposalReport& report)
      : out_(out), report_(report), view_{report.topology, {}}, words_(view_) {}

  void write(bool adviseToSave) {
    out_ << "# yaml-language-server: $schema=" << report_.schemaFile << '\n'
         << "# Proposed by `" << printable(report_.command)
         << "`, from this host's PCI Express topology.\n"
         << (adviseToSave ? "# Add `--write` to save it in the configuration directory.\n" : "")
         << "version: 1\nvm: " << yamlString(report_.vm) << '\n';
    if (!report_.proposal.gpus.empty()) {
      out_ << "gpus:\n";
    }
    for (std::size_t i = 0; i < report_.proposal.gpus.size(); ++i) {
      writeGpu(i);
    }
    writeFabrics();
    writeNvlink();
    out_ << (report_.proposal.vfs.empty() ? "" : "vfs:\n");
    for (std::size_t i = 0; i < report_.proposal.vfs.size(); ++i) {
      writeVf(i);
    }
  }

 private:
  [[nodiscard]] std::string gpuName(std::size_t gpu) const {
    const auto& gpus = report_.proposal.gpus;
    return "gpu" + std::to_string(std::ranges::find(gpus, gpu) - gpus.begin());
  }

  void writeGpu(std::size_t entry) {
    const Device& gpu = words_.function(report_.proposal.gpus[entry]);
    out_ << "  # " << words_.name(report_.proposal.gpus[entry]) << " of this host";
    if (!gpu.model.empty()) {
      out_ << ", " << printable(gpu.model);
    }
    if (gpu.numaNode >= 0) {
      out_ << ", NUMA node " << gpu.numaNode;
    }
    out_ << "\n  - {name: gpu" << entry << ", pci: \"" << toString(gpu.address) << "\""
         << moduleOf(gpu.address) << "}\n";
  }

  // The fabric manager knows the GPU's address now, but no longer once it is bound for a guest.
  [[nodiscard]] std::string moduleOf(const PciAddress& gpu) const {
    if (!report_.partition || !report_.partition->partition) {
      return {};
    }
    const auto& gpus = report_.partition->partition->gpus;
    const auto found = std::ranges::find(gpus, std::optional(gpu), &PartitionGpu::address);
    return found == gpus.end() ? "" : ", nvlink-module: " + std::to_string(found->module);
  }

  // The guest's fabric manager needs them.
  void writeFabrics() {
    const auto& switches = report_.proposal.nvswitches;
    const auto& managers = report_.proposal.nvlinkManagers;
    if (!switches.empty() || !managers.empty()) {
      out_ << "functions:  # "
           << (managers.empty()   ? "NVSwitches"
               : switches.empty() ? "NVLink management"
                                  : "NVSwitches and NVLink management")
           << " of the board, which the guest's fabric manager needs\n";
    }
    for (std::size_t i = 0; i < switches.size(); ++i) {
      writeFabric("nvswitch", i, switches[i]);
    }
    for (std::size_t i = 0; i < managers.size(); ++i) {
      writeFabric("nvlink-mgmt", i, managers[i]);
    }
  }

  void writeFabric(std::string_view kind, std::size_t entry, std::size_t function) {
    out_ << "  - {name: " << kind << entry << ", pci: \""
         << toString(words_.function(function).address) << "\"}\n";
  }

  void writeNvlink() {
    if (!report_.proposal.nvlink) {
      return;
    }
    out_ << "# The GPUs are on a board with NVSwitches: " << nvlinkReason(*report_.proposal.nvlink)
         << partitionHint() << partitionFound()
         << "\nnvlink: " << toString(*report_.proposal.nvlink) << '\n';
  }

  [[nodiscard]] std::string partitionHint() const {
    std::vector<std::string> sizes;
    for (const std::size_t size :
         topology::nvlinkPartitionsNear(report_.topology, report_.proposal)) {
      sizes.push_back(std::to_string(size));
    }
    return sizes.empty() ? ""
                         : "\n# " + join(sizes, " or ") +
                               " GPUs could keep NVLink, as a partition of the fabric manager.";
  }

  [[nodiscard]] std::string partitionFound() const {
    if (!report_.partition) {
      return {};
    }
    const auto& [outcome, partition, summary, remedy, modules] = *report_.partition;
    return "\n# " + printable(summary) + (remedy.empty() ? "." : ";\n# " + printable(remedy) + ".");
  }

  static std::string_view nvlinkReason(NvlinkMode mode) {
    switch (mode) {
      case NvlinkMode::all:
        return "the guest gets the whole board and runs the fabric manager.";
      case NvlinkMode::partition:
        return "each start activates\n"
               "# their partition of the fabric manager, if fmpm is installed here. `disabled` "
               "turns NVLink off.";
      case NvlinkMode::disabled:
        return "`vfpass guest-setup` configures the\n# guest's driver to run without NVLink.";
    }
    return "";
  }

  void writeReason(const topology::ProposedVf& vf) {
    const Device& pf = words_.function(vf.pf);
    out_ << "  # " << printable(words_.name(vf.pf));
    if (!pf.netdevs.empty() && pf.netdev() != words_.name(vf.pf)) {
      out_ << " (" << printable(pf.netdev()) << ")";
    }
    out_ << ", port " << printable(portText(pf)) << ", " << vf.freeVfs << " of " << pf.totalVfs
         << " VFs free\n";
    if (!vf.gpu) {
      return;
    }
    out_ << "  # " << toString(vf.distance) << " to " << gpuName(*vf.gpu) << ": "
         << explain(vf.distance) << "; ";
    if (vf.alike.empty()) {
      out_ << "no other PF of its kind is as near\n";
      return;
    }
    std::vector<std::string> names;
    for (const std::size_t other : vf.alike) {
      names.push_back(printable(words_.name(other)));
    }
    out_ << "equally near: " << join(names, ", ") << '\n';
  }

  void writeVf(std::size_t entry) {
    const topology::ProposedVf& vf = report_.proposal.vfs[entry];
    const Device& pf = words_.function(vf.pf);
    writeReason(vf);
    out_ << "  - name: rail" << entry << "\n    pf: {pci: \"" << toString(pf.address) << "\"}\n";
    if (isInfiniband(pf)) {
      out_ << "    infiniband: {node-guid: auto, port-guid: auto}\n";
    }
  }

  std::ostream& out_;
  const ProposalReport& report_;
  TopologyReport view_;
  TopologyWords words_;
};

void writeJson(std::ostream& out, const ProposalReport& report) {
  const auto address = [&](std::size_t function) {
    return toString(report.topology.functions[function].address);
  };
  Json document = newDocument();
  document["vm"] = report.vm;
  document["file"] = report.file.empty() ? Json(nullptr) : Json(report.file);
  document["gpus"] = listJson(report.proposal.gpus, address);
  document["nvswitches"] = listJson(report.proposal.nvswitches, address);
  document["nvlink_management"] = listJson(report.proposal.nvlinkManagers, address);
  document["nvlink"] =
      report.proposal.nvlink ? Json(toString(*report.proposal.nvlink)) : Json(nullptr);
  document["vfs"] = listJson(report.proposal.vfs, [&](const topology::ProposedVf& vf) -> Json {
    return {{"pf", address(vf.pf)},
            {"gpu", vf.gpu ? Json(address(*vf.gpu)) : Json()},
            {"distance", vf.gpu ? Json(toString(vf.distance)) : Json()},
            {"as_near", listJson(vf.alike, address)},
            {"free_vfs", vf.freeVfs}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeEditedMapping(std::ostream& out, const std::string& file, bool changed) {
  Json document = newDocument();
  document["file"] = file;
  document["changed"] = changed;
  writeDocument(out, document);
}

void writeCreatedFile(std::ostream& out, const std::string& file,
                      const std::vector<NextCommand>& next) {
  out << "created " << printable(file) << "\nnext:\n";
  std::size_t width = 0;
  for (const NextCommand& each : next) {
    width = std::max(width, each.line.size());
  }
  for (const NextCommand& each : next) {
    out << "  " << printable(each.line) << std::string(width - each.line.size(), ' ') << "  # "
        << each.use << '\n';
  }
}

void writeProposal(std::ostream& out, const ProposalReport& report, const Style& style) {
  if (style.json) {
    writeJson(out, report);
  } else {
    ProposalWriter(out, report).write(true);
  }
}

void writeProposalYaml(std::ostream& out, const ProposalReport& report) {
  ProposalWriter(out, report).write(false);
}

}  // namespace vfpass::report
