#include "transfer/run_deadline.hpp"

#include "vfpass/error.hpp"

namespace vfpass::probe {

void requireTimeLeft(const Deadline& deadline, const std::string& doing) {
  if (deadline.over()) {
    throw Error("deadline expired while " + doing,
                "use a longer --deadline, or fewer or smaller messages");
  }
}

}  // namespace vfpass::probe
