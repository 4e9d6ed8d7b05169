#include "vfpass/report/device_matrix_report.hpp"

#include <ostream>

#include "text_values.hpp"
#include "topology_words.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {

void writeDeviceMatrix(std::ostream& out, const std::string& title,
                       const topology::DeviceMatrix& matrix, const Style& style) {
  if (matrix.names.size() < 2) {
    return;
  }
  std::vector<std::string> header{""};
  for (const std::string& name : matrix.names) {
    header.push_back(printable(name));
  }
  Table table(header);
  for (std::size_t one = 0; one < matrix.names.size(); ++one) {
    std::vector<Cell> row{{printable(matrix.names[one])}};
    for (const auto& distance : matrix.distances[one]) {
      row.push_back(distance ? Cell{std::string(toString(*distance)), tintOf(*distance)}
                             : Cell{notObservable});
    }
    table.add(std::move(row));
  }
  out << tinted(printable(title), Tint::heading, style) << '\n';
  table.write(out, style);
}

}  // namespace vfpass::report
