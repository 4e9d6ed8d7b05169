// Files of other programs, of which a snapshot keeps only known settings: the first line is the
// path.
// covers: src/doctor/known_settings.cpp
#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const auto end = std::min(input.find('\n'), input.size());
  const std::string path(input.substr(0, end));
  const std::string content(input.substr(std::min(end + 1, input.size())));
  const std::string kept = doctor::knownSettings(path, content);
  require(kept.empty() || kept.back() == '\n', "each setting is a line");
  const auto profile = doctor::knownSettings("etc/NetworkManager/system-connections/wlan",
                                             content + "\n\n[wifi-security]\npsk=Pr1vate\n");
  require(profile.find("Pr1vate") == std::string::npos, "no key of a WLAN is kept");
}

}  // namespace vfpass::fuzz
