#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/fabric_partition.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// NVIDIA's client of the fabric manager (fmpm, github.com/NVIDIA/Fabric-Manager-Client), or a
/// script in its place that asks a fabric manager elsewhere. Its absolute path; empty: not
/// installed.
std::string findFmpm(const Root& root);

/// The output of `fmpm -l`: the fabric manager's partitions, in its order. Throws Error for a text
/// that is not such a list, which then is the program's own message, and for a list that
/// contradicts itself: a number that two partitions have, a GPU that a partition lists twice or
/// that has two addresses, and two active partitions that share a GPU.
std::vector<FabricPartition> parsePartitions(std::string_view output);

/// Runs `fmpm -l`. Throws Error as parsePartitions(), and if the program does not answer in time;
/// it is then killed.
std::vector<FabricPartition> readPartitions(const std::string& fmpm,
                                            std::chrono::milliseconds deadline);

/// Runs `fmpm -a` or `fmpm -d` for Kernel::setPartition(), and reads the list before and after it.
/// Throws if `fmpm` is empty, because it is not installed.
void setPartition(const std::string& fmpm, const SetPartition& action,
                  const std::function<void()>& activating, std::chrono::milliseconds deadline);

/// The version in the output of `nv-fabricmanager --version`; empty: it has none.
std::string fabricManagerVersion(std::string_view output);

/// That of the fabric manager on this host; empty: its output has none. nullopt: there is no fabric
/// manager, or it does not answer in time.
std::optional<std::string> readFabricManagerVersion(std::chrono::milliseconds deadline);

}  // namespace vfpass::host
