#pragma once

#include <gtest/gtest.h>

#include <string>

#include "config_space.hpp"
#include "doctored_host.hpp"

namespace vfpass::doctor {

inline constexpr unsigned sixBits = 0x5f;  // all but egress control

/// 4096 bytes with an AER capability first, then ACS or ATS.
inline std::string configWith(unsigned capability, unsigned capable = 0, unsigned enabled = 0) {
  std::string config(4096, '\0');
  const auto word = [&](std::size_t at, unsigned value) {
    config[at] = static_cast<char>(value & 0xffU);
    config[at + 1] = static_cast<char>(value >> 8U);
  };
  word(0x100, 0x0001);
  word(0x102, 0x1482);  // the next one is at 0x148
  word(0x148, capability);
  word(0x14a, 0x0001);
  word(0x14c, capable);
  word(0x14e, enabled);
  return config;
}

inline std::string acs(unsigned enabled, unsigned capable = sixBits) {
  return configWith(0x0d, capable, enabled);
}

/// With the settings of ports between GPU and NIC.
class AcsTest : public testing::Test, public DoctoredHost {
 protected:
  void fitForGuests() {
    file(rootPort, "config", acs(0x1d));
    file(nicPort, "config", acs(0x5d));
    file(gpuPort, "config", acs(0x1d));
  }
};

}  // namespace vfpass::doctor
