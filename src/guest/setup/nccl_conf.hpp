#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"

namespace vfpass::setup {

/// `KEY=VALUE` lines for /etc/nccl.conf; an empty `topologyFile` is left out.
std::vector<std::string> ncclLines(const NcclSettings& settings, const std::string& topologyFile);

/// `content` with our block of these lines at its top, all other bytes unchanged. NCCL applies each
/// line with setenv(..., 0), so the first line of a key takes effect. No lines: without our block.
std::string withNcclBlock(const std::string& content, const std::vector<std::string>& lines);

/// Lines outside our block that a block of `lines` overrides, verbatim.
std::vector<std::string> overriddenLines(const std::string& content,
                                         const std::vector<std::string>& lines);

}  // namespace vfpass::setup
