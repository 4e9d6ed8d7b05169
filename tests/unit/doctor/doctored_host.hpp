#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "hosts/sysfs_tree.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {

/// A GPU and a PF with two VFs below one switch, and nothing else. Tests add the files.
class DoctoredHost {
 public:
  DoctoredHost() {
    builder.topology.processors.architecture = "x86_64";
    builder.topology.processors.vendor = "GenuineIntel";
    const auto bridge = builder.hostBridge("pci0000:00", 0);
    rootPort = builder.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
    upstream = builder.function(FunctionRole::upstreamPort, "0000:01:00.0", bridge, rootPort);
    nicPort = builder.function(FunctionRole::downstreamPort, "0000:02:00.0", bridge, upstream);
    gpuPort = builder.function(FunctionRole::downstreamPort, "0000:02:01.0", bridge, upstream);
    pf = builder.pf("0000:03:00.0", "mlx5_0", bridge, nicPort);
    for (unsigned index = 0; index < 2; ++index) {
      const auto vf = builder.function(FunctionRole::nic, "0000:03:00." + std::to_string(index + 1),
                                       bridge, nicPort);
      builder.topology.functions[vf].physicalFunction = builder.topology.functions[pf].address;
      builder.topology.functions[vf].vfIndex = index;
    }
    builder.topology.functions[pf].vfCount = 2;
    gpu = builder.gpu("0000:04:00.0", bridge, gpuPort);
    unsigned group = 10;
    for (Device& function : builder.topology.functions) {
      function.path = toString(function.address);
      function.iommuGroup = group++;
    }
  }

  Device& function(std::size_t number) { return builder.topology.functions[number]; }
  void file(const std::string& name, const std::string& content) const { tree.file(name, content); }
  /// Writes a file of a function.
  void file(std::size_t number, const std::string& name, const std::string& content) {
    tree.file("sys/devices/" + function(number).path + "/" + name, content);
  }
  void require(Requirement requirement) {
    requirement.vm = "train0";
    requirement.entry = "rail0";
    requirement.pf = function(pf).address;
    requirements.vfs.push_back(std::move(requirement));
  }

  [[nodiscard]] std::vector<Finding> findings(const std::string& key) const {
    const host::Root root(tree.path());
    std::vector<Finding> found;
    for (const Diagnosis& each : examine(root, builder.topology, requirements)) {
      collect(each.finding);
      if (each.finding.key == key) {
        found.push_back(each.finding);
      }
    }
    return found;
  }
  /// The first failure, otherwise the first finding. Every check has one.
  [[nodiscard]] Finding finding(const std::string& key) const {
    const auto found = findings(key);
    const auto failed = std::ranges::find(found, Outcome::failed, &Finding::outcome);
    return failed != found.end() ? *failed : found.at(0);
  }
  [[nodiscard]] Outcome outcome(const std::string& key) const { return finding(key).outcome; }

  /// For tests/cli/remedies_test.py, which judges every remedy that these tests produce.
  static void collect(const Finding& finding) {
    if (const char* file = std::getenv("VFPASS_REMEDIES"); file != nullptr) {
      std::ofstream(file, std::ios::app) << finding.key << "\t" << finding.remedy << "\n";
    }
  }

  hosts::SysfsTree tree;
  hosts::TopologyBuilder builder;
  Requirements requirements;
  std::size_t rootPort = 0;
  std::size_t upstream = 0;
  std::size_t nicPort = 0;
  std::size_t gpuPort = 0;
  std::size_t pf = 0;
  std::size_t gpu = 0;
};

}  // namespace vfpass::doctor
