#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace vfpass::doctor {

// The checks for other programs that create or configure VFs; those for netplan and systemd are
// with the table.
void checkNetworkManager(const View& view, Results& results);
std::string withoutManagedVfs(const View& view);  ///< why checkDhcp does not apply
void checkDhcp(const View& view, Results& results);
void checkBootScripts(const View& view, Results& results);

/// Paths of the files in these directories. One in an earlier directory hides those of the same
/// name in later ones.
std::vector<std::string> filesIn(const View& view, std::initializer_list<std::string_view> folders);

/// The beginning of a remedy for a file, such as `in /etc/netplan/a.yaml, `. Packages and programs
/// write files outside of etc again: those are overridden by a copy in `folder`, under `name`.
std::string editing(const std::string& file, const std::string& folder, const std::string& name);

}  // namespace vfpass::doctor
