#include "vfpass/pf_settings.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<EswitchMode, 2> eswitchModeNames{
    {{EswitchMode::legacy, "legacy"}, {EswitchMode::switchdev, "switchdev"}}};

}  // namespace

std::string_view toString(EswitchMode mode) { return nameOf(eswitchModeNames, mode); }

std::optional<EswitchMode> parseEswitchMode(std::string_view name) {
  return valueOf(eswitchModeNames, name);
}

}  // namespace vfpass
