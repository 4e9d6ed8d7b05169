#pragma once

namespace vfpass {

/// Whether a measured rate shows that its limit is wrong: limits are computed from the port and
/// from PCI Express links, and nothing can be much faster than they are. Both in one unit; false if
/// there is no limit.
inline bool showsWrongLimit(double measured, double limit) {
  constexpr double inaccuracy = 1.1;  // of the payload per packet and of the measured time
  return limit > 0 && measured > limit * inaccuracy;
}

}  // namespace vfpass
