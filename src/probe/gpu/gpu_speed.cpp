#include "gpu/gpu_speed.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "transfer/pattern_formula.hpp"
#include "transfer/statistics.hpp"

namespace vfpass::probe {
namespace {

constexpr std::uint64_t seed = 0x5eed;

/// Measures time between two events on the GPU.
class GpuTimer {
 public:
  explicit GpuTimer(const CudaDriver& driver) : driver_(driver) {
    driver_.check(driver_.eventCreate(&begin_, 0), "cannot create an event");
    driver_.check(driver_.eventCreate(&end_, 0), "cannot create an event");
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;
  ~GpuTimer() {
    driver_.eventDestroy(begin_);
    driver_.eventDestroy(end_);
  }

  /// Seconds that the GPU takes for the work that `work` starts.
  double seconds(const std::function<void()>& work) {
    driver_.check(driver_.eventRecord(begin_, nullptr), "cannot record an event");
    work();
    driver_.check(driver_.eventRecord(end_, nullptr), "cannot record an event");
    driver_.check(driver_.eventSynchronize(end_), "cannot wait for the GPU");
    float milliseconds = 0;
    driver_.check(driver_.eventElapsed(&milliseconds, begin_, end_), "cannot read an event");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  const CudaDriver& driver_;
  CudaEvent begin_ = nullptr;
  CudaEvent end_ = nullptr;
};

struct Series {
  const char* name;
  std::function<void()> work;
  std::vector<double> rates;  ///< bytes per second
};

/// `{memset: {...}, fill: {...}, check: {...}}` in 10^9 bytes per second.
nlohmann::json runRounds(GpuTimer& timer, std::vector<Series>& series, std::uint64_t bytes,
                         int rounds) {
  for (int round = -1; round < rounds; ++round) {
    for (Series& one : series) {
      const double seconds = timer.seconds(one.work);
      if (round >= 0) {  // the first one warms up
        one.rates.push_back(static_cast<double>(bytes) / seconds);
      }
    }
  }
  nlohmann::json result;
  for (const Series& one : series) {
    result[one.name] = toJson(summarize(one.rates), 1e9);
  }
  return result;
}

double median(const Series& series) { return summarize(series.rates).median; }

}  // namespace

nlohmann::json measureKernels(const std::shared_ptr<const Gpu>& gpu, std::uint64_t bytes,
                              int rounds) {
  const GpuBuffer buffer(gpu, bytes);
  const GpuBuffer results(gpu, 2 * sizeof(Word));
  const CudaDriver& driver = gpu->driver();
  const GpuMessages whole{buffer.address(), bytes, bytes};
  const GpuMessages shifted{buffer.address() + 1, bytes, bytes - 1};
  // Each check follows its matching fill; otherwise it would report every byte.
  std::vector<Series> series{
      {"memset",
       [&] { driver.check(driver.memorySet32(whole.base, 0, bytes / 4), "cannot set GPU memory"); },
       {}},
      {"fill", [&] { gpu->startFill(whole, seed, 0); }, {}},
      {"check", [&] { gpu->startCheck(whole, seed, results.address()); }, {}},
      {"fill_unaligned", [&] { gpu->startFill(shifted, seed, 0); }, {}},
      {"check_unaligned", [&] { gpu->startCheck(shifted, seed, results.address()); }, {}},
  };
  GpuTimer timer(driver);
  nlohmann::json result = runRounds(timer, series, bytes, rounds);
  result["bytes"] = bytes;
  result["rounds"] = rounds;
  result["unit"] = "10^9 bytes per second, each byte counted once";
  result["check_over_memset"] = median(series[2]) / median(series[0]);
  result["fill_over_memset"] = median(series[1]) / median(series[0]);
  result["check_unaligned_over_memset"] = median(series[4]) / median(series[0]);
  return result;
}

}  // namespace vfpass::probe
