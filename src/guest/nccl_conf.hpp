#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"

namespace vfpass::guest {

/// `KEY=VALUE` lines for /etc/nccl.conf; `topologyFile` empty: none.
std::vector<std::string> ncclLines(const NcclSettings& settings, const std::string& topologyFile);

/// `content` with our block of these lines at its top and every other byte as it was. NCCL sets
/// each line with setenv(..., 0), so the first one of a key counts. No lines: without a block.
std::string withNcclBlock(const std::string& content, const std::vector<std::string>& lines);

/// Other people's lines that a block of `lines` makes void, as they stand there.
std::vector<std::string> voidedLines(const std::string& content,
                                     const std::vector<std::string>& lines);

}  // namespace vfpass::guest
