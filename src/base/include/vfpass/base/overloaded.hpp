#pragma once

namespace vfpass {

/// Visitor for std::visit with one lambda for each alternative.
template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace vfpass
