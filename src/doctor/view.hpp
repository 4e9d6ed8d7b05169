#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/doctor/doctor.hpp"
#include "vfpass/topology/nearest_pf.hpp"
#include "vfpass/version.hpp"

namespace vfpass::doctor {

/// The host as the checks see it. With the requirements of one VM, it has only that VM's devices.
class View {
 public:
  View(const host::Root& root, const Topology& topology, const Requirements& requirements,
       const Inquiries& inquiries);

  [[nodiscard]] const host::Root& root() const { return root_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const Requirements& requirements() const { return requirements_; }
  [[nodiscard]] const Inquiries& inquiries() const { return inquiries_; }
  [[nodiscard]] const Device& function(std::size_t number) const {
    return topology_.functions[number];
  }
  [[nodiscard]] const std::vector<std::size_t>& gpus() const { return gpus_; }
  /// NICs whose VFs a VM can use.
  [[nodiscard]] const std::vector<std::size_t>& pfs() const { return pfs_; }
  /// Only rails with a PF: first those of the used GPUs among the used PFs, then the others.
  [[nodiscard]] const std::vector<topology::Rail>& rails() const { return rails_; }
  /// Whether a mapping, host.yaml, a lease or the user's selection names this device; a VF counts
  /// as its PF. A fault of any other device is only a warning. As long as nothing names a device of
  /// this host, every device counts as used, because any of them may become so.
  [[nodiscard]] bool uses(std::size_t number) const;
  /// Whether anything names a device of this host.
  [[nodiscard]] bool namesDevices() const { return !used_.empty(); }
  /// Both ends are used.
  [[nodiscard]] bool uses(const topology::Rail& rail) const;

  /// Facts that no file holds: from netlink, libvirt or a program. On the running system, calls
  /// `query` and records its answer (Inquiries::answers); in a captured tree, reads `vfpass/NAME`.
  /// nullopt if unknown. Each question is asked once.
  [[nodiscard]] std::optional<std::string> answer(
      const std::string& name, const std::function<std::optional<std::string>()>& query) const;
  /// Like answer(), for what `query` finds in files that a snapshot must not contain: in a captured
  /// tree without a recorded answer, `query` is called, too.
  [[nodiscard]] std::string derived(const std::string& name,
                                    const std::function<std::string()>& query) const;
  /// What `knownSettings` keeps of a configuration file, as text and in lines.
  [[nodiscard]] std::string settingsText(const std::string& path) const;
  [[nodiscard]] std::vector<std::string> settings(const std::string& path) const;
  /// Value of a kernel argument; the last one if it is repeated, empty if it has none.
  [[nodiscard]] std::optional<std::string> kernelArgument(const std::string& name) const;
  /// Version of the running kernel, such as (6, 1); nullopt if unknown.
  [[nodiscard]] std::optional<Version> kernelVersion() const;
  [[nodiscard]] bool moduleLoaded(const std::string& name) const;
  /// `Y` and `1` are true.
  [[nodiscard]] std::optional<bool> moduleFlag(const std::string& module,
                                               const std::string& parameter) const;
  /// A function's configuration space, up to 4096 bytes; empty if it cannot be read. Read once.
  [[nodiscard]] const std::string& config(const Device& function) const;
  /// Path of a function's file in sysfs.
  [[nodiscard]] static std::string pathOf(const Device& function, const std::string& file);

 private:
  const host::Root& root_;
  const Topology& topology_;
  const Requirements& requirements_;
  const Inquiries& inquiries_;
  std::vector<std::size_t> gpus_;
  std::vector<std::size_t> pfs_;
  std::vector<topology::Rail> rails_;
  mutable std::map<std::string, std::optional<std::string>> asked_;
  mutable std::map<PciAddress, std::string> configs_;
  std::set<PciAddress> used_;  ///< empty: every device
};

/// The usual name of a PF: its RDMA device, otherwise its netdev, otherwise its address.
std::string nameOf(const Device& function);

}  // namespace vfpass::doctor
