#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "families.hpp"

namespace vfpass::metrics {

/// Collects samples and writes them in a format that is valid both as Prometheus text 0.0.4, which
/// node_exporter's textfile collector reads, and as OpenMetrics 1.0.
class Exposition {
 public:
  /// `labels` has one value for each label of the family, in its order; any bytes. A second sample
  /// with the same labels is ignored: node_exporter would refuse to answer at all.
  void add(const Family& family, const std::vector<std::string>& labels, std::uint64_t value);
  void add(const Family& family, const std::vector<std::string>& labels, double value);

  [[nodiscard]] std::string text() const;

 private:
  struct Samples {
    std::string lines;
    std::set<std::string> seen;  ///< labels
  };
  void addText(const Family& family, const std::vector<std::string>& labels,
               const std::string& value);

  std::map<std::string_view, Samples> samples_;  ///< by family
};

}  // namespace vfpass::metrics
