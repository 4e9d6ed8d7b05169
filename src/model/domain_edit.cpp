#include "vfpass/domain_edit.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<EditPlace, 9> placeNames{{{EditPlace::memtune, "memtune"},
                                          {EditPlace::memoryBacking, "memoryBacking"},
                                          {EditPlace::cputune, "cputune"},
                                          {EditPlace::numatune, "numatune"},
                                          {EditPlace::cpu, "cpu"},
                                          {EditPlace::pcieRoot, "pcie-root"},
                                          {EditPlace::qemuCommandline, "qemu:commandline"},
                                          {EditPlace::qemuOverride, "qemu:override"},
                                          {EditPlace::domain, "domain"}}};

constexpr Names<SettingStanding, 3> standingNames{{{SettingStanding::proposed, "proposed"},
                                                   {SettingStanding::manual, "manual"},
                                                   {SettingStanding::administrators, "kept"}}};

}  // namespace

std::string_view toString(EditPlace place) { return nameOf(placeNames, place); }

std::optional<EditPlace> parseEditPlace(std::string_view name) { return valueOf(placeNames, name); }

std::string_view toString(SettingStanding standing) { return nameOf(standingNames, standing); }

}  // namespace vfpass
