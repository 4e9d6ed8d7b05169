#pragma once

#include <string>

#include "world/world.hpp"

namespace vfpass::crash {

inline constexpr const char* firstPf = "0000:01:00.0";
inline constexpr const char* secondPf = "0000:02:00.0";
inline constexpr const char* gpu = "0000:0a:00.0";
/// The mapping of `gpu`.
inline constexpr const char* gpuMapping = "functions:\n  - name: acc0\n    pci: \"0000:0a:00.0\"\n";

Uuid domainUuid(unsigned number);

/// Writes the mapping of a VM; `text` follows the lines with version and name.
void writeMapping(const World& world, const std::string& vm, const std::string& text);

/// One entry of `vfs` in a mapping; `settings` are further lines of it.
std::string vfEntry(const std::string& name, const std::string& settings,
                    const std::string& pf = firstPf);

/// Two PFs and the domain `train0`, whose mapping has two VFs of the first PF. If the first PF has
/// VFs, somebody has set attributes and the driver override of VF 0, and every detach and rollback
/// must restore them.
void setUpTraining(World& world, unsigned vfs);

/// The mapping of `train0`.
std::string trainingMapping();

/// One PF with four VFs and the domains vm0, vm1 and so on. Each has one VF and VLAN 10, 11, ...
void setUpVms(World& world, unsigned vms);

/// Sets the configuration of the host, without its first line.
void writeHostFile(const World& world, const std::string& text);

/// Throws if a command that prepares a test failed.
void require(const Result& result, const std::string& command);

}  // namespace vfpass::crash
