#pragma once

#include <array>
#include <string>

#include "world/world.hpp"

namespace vfpass::crash {

inline constexpr const char* firstPf = "0000:01:00.0";
inline constexpr const char* secondPf = "0000:02:00.0";
inline constexpr const char* gpu = "0000:0a:00.0";
/// The mapping of `gpu`.
inline constexpr const char* gpuMapping = "functions:\n  - name: acc0\n    pci: \"0000:0a:00.0\"\n";

/// GPUs of an NVLink board, with the module IDs 1 to 4.
inline constexpr std::array boardGpus{"0000:0a:00.0", "0000:0b:00.0", "0000:0c:00.0",
                                      "0000:0d:00.0"};

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

/// A board with four GPUs and a fabric manager, and the domains `train0` and `train1`, whose
/// mappings have the first and the second pair of them: the partitions 2 and 3. Partition 1 is the
/// board, and 4 to 7 have one GPU each.
void setUpBoard(World& world);

/// Sets the configuration of the host, without its first line.
void writeHostFile(const World& world, const std::string& text);

/// Throws if a command that prepares a test failed.
void require(const Result& result, const std::string& command);

}  // namespace vfpass::crash
