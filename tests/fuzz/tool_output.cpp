// Output of perftest and nccl-tests in the guest.
// covers: src/guest/verify/guest_tools.cpp -shell -Perftest -randomPorts -findTools -runPerftest
// -runAllReduce -lastLine
#include <cmath>

#include "fuzz/target.hpp"
#include "guest_tools.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  constexpr std::uint64_t bytes = 65536;
  const auto isFigure = [](double value) { return std::isfinite(value) && value >= 0; };
  const auto bandwidth = verify::readPerftestBandwidth(input, bytes);
  require(!bandwidth || (isFigure(*bandwidth) && *bandwidth > 0), "a bandwidth is above zero");
  if (const auto latency = verify::readPerftestLatency(input, bytes)) {
    require(isFigure(latency->typicalMicroseconds) && isFigure(latency->tailMicroseconds),
            "a latency is a number");
  }
  if (const auto reduce = verify::readAllReduce(input)) {
    require(isFigure(reduce->busGigabytesPerSecond), "a bandwidth is a number");
  }
}

}  // namespace vfpass::fuzz
