#include "vfpass/nvlink_mode.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<NvlinkMode, 3> modeNames{{{NvlinkMode::all, "all"},
                                          {NvlinkMode::partition, "partition"},
                                          {NvlinkMode::disabled, "disabled"}}};

}  // namespace

std::string_view toString(NvlinkMode mode) { return nameOf(modeNames, mode); }

std::optional<NvlinkMode> parseNvlinkMode(std::string_view name) {
  return valueOf(modeNames, name);
}

}  // namespace vfpass
