// What journalctl prints for `vfpass history`: every user can write entries with our fields.
// covers: src/state/events/history.cpp -journalctlCommand -addMatches
#include <string>

#include "fuzz/target.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/events/history.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const auto history = events::readHistory(std::string(input));
  require(history.operations.size() + history.remarks.size() <= splitLines(input).size(),
          "each line is one operation or one remark");
  for (const auto& past : history.operations) {
    require(past.unit.empty() || past.unit.ends_with(".service"), "a unit is a service");
  }
  for (const auto& remark : history.remarks) {
    require(!remark.empty(), "a remark says something");
  }
}

}  // namespace vfpass::fuzz
