#include "vfpass/report/actions_report.hpp"

#include <ostream>

#include "json.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {

void writeActions(std::ostream& out, const std::vector<std::string>& actions, const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["actions"] = actions;
    writeDocument(out, document);
    return;
  }
  for (const auto& action : actions) {
    out << printable(action) << '\n';
  }
}

}  // namespace vfpass::report
