#include "ini_settings.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

using Setting = std::pair<std::string, std::string>;

bool same(std::string_view one, std::string_view other) { return toLower(one) == toLower(other); }

Setting settingIn(std::string_view line) {
  const auto equals = line.find('=');
  const auto value =
      equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1);
  return {std::string(trim(line.substr(0, equals))), std::string(trim(value))};
}

// Lines that end in a backslash go on in the next one (systemd.syntax(7)).
std::vector<std::string> logicalLines(std::string_view text) {
  std::vector<std::string> lines;
  bool goesOn = false;
  for (const std::string& line : splitLines(text)) {
    const auto part = trim(line);
    if (part.starts_with('#') || part.starts_with(';')) {
      continue;
    }
    if (!goesOn) {
      lines.emplace_back();
    }
    goesOn = part.ends_with('\\');
    lines.back() += part.substr(0, part.size() - (goesOn ? 1 : 0));
  }
  return lines;
}

void keep(const IniSection& section, std::string_view key, IniSection& kept) {
  if (const std::string value = section.value(key); !value.empty()) {
    kept.settings.emplace_back(key, value);
  }
}

}  // namespace

bool IniSection::is(std::string_view other) const { return same(name, other); }

std::string IniSection::value(std::string_view key) const {
  std::string found;
  for (const auto& [each, assigned] : settings) {
    if (same(each, key)) {
      found = assigned;
    }
  }
  return found;
}

std::vector<IniSection> readIni(std::string_view text) {
  std::vector<IniSection> sections(1);
  for (const std::string& line : logicalLines(text)) {
    if (line.starts_with('[') && line.ends_with(']')) {
      sections.push_back({line.substr(1, line.size() - 2), {}});
    } else if (!line.empty()) {
      sections.back().settings.push_back(settingIn(line));
    }
  }
  return sections;
}

const IniSection* findSection(const std::vector<IniSection>& sections, std::string_view name) {
  const auto found =
      std::ranges::find_if(sections, [&](const IniSection& section) { return section.is(name); });
  return found == sections.end() ? nullptr : &*found;
}

std::string writeIni(const std::vector<IniSection>& sections) {
  std::string text;
  for (const IniSection& section : sections) {
    text += section.name.empty() ? "" : "[" + section.name + "]\n";
    for (const auto& [key, value] : section.settings) {
      text += key + "=" + value + "\n";
    }
  }
  return text;
}

std::string reducedProfile(std::string_view text) {
  IniSection profile{"connection", {}};
  std::vector<IniSection> vfs;
  for (const IniSection& section : readIni(text)) {
    if (section.is("connection")) {
      // The name, which people chose, only if the profile has no other identification.
      keep(section, section.value("uuid").empty() ? "id" : "uuid", profile);
    } else if (section.is("sriov") || !section.value("total-vfs").empty()) {
      keep(section, "total-vfs", vfs.emplace_back(IniSection{"sriov", {}}));
    }
  }
  if (vfs.empty()) {
    return {};
  }
  vfs.insert(vfs.begin(), profile);
  return writeIni(vfs);
}

// ifcfg files are shell assignments; nm-settings-ifcfg-rh(5) has the names.
std::string reducedIfcfg(std::string_view text) {
  const IniSection file = readIni(text).front();
  IniSection kept;
  for (const auto& [key, value] : file.settings) {
    if (key.starts_with("SRIOV_")) {
      kept.settings.emplace_back(key, key == "SRIOV_TOTAL_VFS" ? value : "");
    }
  }
  if (!kept.settings.empty()) {
    keep(file, "UUID", kept);
  }
  return writeIni({kept});
}

// A [SR-IOV] section counts without any key, too: it is there to configure a VF.
std::string reducedNetworkFile(std::string_view text) {
  std::vector<IniSection> sections;
  for (const IniSection& section : readIni(text)) {
    if (section.is("SR-IOV")) {
      keep(section, "VirtualFunction", sections.emplace_back(IniSection{"SR-IOV", {}}));
    } else if (!section.value("SR-IOVVirtualFunctions").empty() &&
               (section.is("Link") || section.name.empty())) {
      keep(section, "SR-IOVVirtualFunctions", sections.emplace_back(IniSection{section.name, {}}));
    }
  }
  return writeIni(sections);
}

}  // namespace vfpass::doctor
