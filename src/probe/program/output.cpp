#include "output.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "system/build_id.hpp"

namespace vfpass::probe {

void writeDocument(nlohmann::json document) {
  document["program"] = "vfpass-probe";
  document["protocol"] = protocolVersion;
  document["version"] = VFPASS_VERSION;
  document["build_id"] = buildId();
  // Names and texts come from the guest's kernel and drivers, so invalid UTF-8 is replaced.
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
            << std::flush;
}

}  // namespace vfpass::probe
