#include "vfpass/imported_mapping.hpp"

#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

struct ReasonName {
  LeftOutReason reason;
  std::string_view name;
};

constexpr std::array reasonNames{ReasonName{LeftOutReason::managed, "managed"},
                                 ReasonName{LeftOutReason::otherBus, "other-bus"},
                                 ReasonName{LeftOutReason::mediated, "mediated"},
                                 ReasonName{LeftOutReason::arguments, "arguments"},
                                 ReasonName{LeftOutReason::nvmeDisk, "nvme-disk"},
                                 ReasonName{LeftOutReason::macvtap, "macvtap"},
                                 ReasonName{LeftOutReason::network, "network"},
                                 ReasonName{LeftOutReason::invalid, "invalid"},
                                 ReasonName{LeftOutReason::missing, "missing"},
                                 ReasonName{LeftOutReason::claimedTwice, "claimed-twice"},
                                 ReasonName{LeftOutReason::otherDomain, "other-domain"},
                                 ReasonName{LeftOutReason::runningOnly, "running-only"},
                                 ReasonName{LeftOutReason::pf, "pf"},
                                 ReasonName{LeftOutReason::function, "function"},
                                 ReasonName{LeftOutReason::driver, "driver"},
                                 ReasonName{LeftOutReason::settings, "settings"},
                                 ReasonName{LeftOutReason::teaming, "teaming"},
                                 ReasonName{LeftOutReason::quarantine, "quarantine"}};

}  // namespace

std::string_view toString(LeftOutReason reason) {
  return std::ranges::find(reasonNames, reason, &ReasonName::reason)->name;
}

std::string describe(const LeftOut& leftOut) {
  return printable(leftOut.form) + (leftOut.device ? " " + toString(*leftOut.device) : "") + ": " +
         leftOut.message;
}

}  // namespace vfpass
