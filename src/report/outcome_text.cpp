#include "outcome_text.hpp"

#include <algorithm>

namespace vfpass::report {

Tint tintOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return Tint::good;
    case Outcome::failed:
      return Tint::bad;
    case Outcome::notObservable:
    case Outcome::warning:
      return Tint::warning;
    case Outcome::waived:
      return Tint::muted;
  }
  return Tint::none;
}

std::string wordOf(Outcome outcome) {
  std::string text(toString(outcome));
  std::ranges::replace(text, ' ', '_');
  return text;
}

}  // namespace vfpass::report
