#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/base/version.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/topology/rails.hpp"

namespace vfpass::doctor {

/// The host as the checks see it: with one VM's wishes only that VM's devices.
class View {
 public:
  View(const host::Root& root, const Topology& topology, const Wishes& wishes,
       const Inquiries& inquiries);

  [[nodiscard]] const host::Root& root() const { return root_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const Wishes& wishes() const { return wishes_; }
  [[nodiscard]] const Inquiries& inquiries() const { return inquiries_; }
  [[nodiscard]] const TopologyFunction& function(std::size_t number) const {
    return topology_.functions[number];
  }
  [[nodiscard]] const std::vector<std::size_t>& gpus() const { return gpus_; }
  /// NICs that a VM can get VFs of.
  [[nodiscard]] const std::vector<std::size_t>& pfs() const { return pfs_; }
  /// Only rails with a PF.
  [[nodiscard]] const std::vector<topology::Rail>& rails() const { return rails_; }

  /// What no file says: over netlink, from libvirt, from a program. On the running system `ask` is
  /// asked and its answer noted (Inquiries::answers); a captured tree has it in `vfpass/NAME`.
  /// nullopt: nobody knows.
  [[nodiscard]] std::optional<std::string> answer(
      const std::string& name, const std::function<std::optional<std::string>()>& ask) const;
  /// The lines of `essence` of a configuration file.
  [[nodiscard]] std::vector<std::string> settings(const std::string& path) const;
  /// Value of a kernel argument, the last one where it is given several times; empty without value.
  [[nodiscard]] std::optional<std::string> kernelArgument(const std::string& name) const;
  /// Of the running kernel: (6, 1); nullopt where it cannot be seen.
  [[nodiscard]] std::optional<Version> kernelVersion() const;
  [[nodiscard]] bool moduleLoaded(const std::string& name) const;
  /// `Y` and `1` are true.
  [[nodiscard]] std::optional<bool> moduleFlag(const std::string& module,
                                               const std::string& parameter) const;
  /// A file of a function in sysfs.
  [[nodiscard]] std::string pathOf(const TopologyFunction& function, const std::string& file) const;

 private:
  const host::Root& root_;
  const Topology& topology_;
  const Wishes& wishes_;
  const Inquiries& inquiries_;
  std::vector<std::size_t> gpus_;
  std::vector<std::size_t> pfs_;
  std::vector<topology::Rail> rails_;
};

/// What people call a PF: its RDMA device, otherwise its netdev, otherwise its address.
std::string nameOf(const TopologyFunction& function);

}  // namespace vfpass::doctor
