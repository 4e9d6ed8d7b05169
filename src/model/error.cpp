#include "vfpass/error.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// Collects the errors of several calls.
class Failures {
 public:
  void add(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const TimeoutError& error) {
      addError(error, true);
    } catch (const Error& error) {
      addError(error, false);
    }
  }

  void throwAny() const {
    if (messages_.empty()) {
      return;
    }
    const std::string message = join(messages_, "; ");
    if (late_) {
      throw TimeoutError(message, remedy_);
    }
    throw Error(message, remedy_);
  }

 private:
  void addError(const Error& error, bool late) {
    messages_.emplace_back(error.what());
    // The remedy for a call that hangs takes precedence: it can block the others.
    if (remedy_.empty() || (late && !late_)) {
      remedy_ = error.remedy();
    }
    late_ = late_ || late;
  }

  std::vector<std::string> messages_;
  std::string remedy_;
  bool late_ = false;
};

}  // namespace

void throwAny(const std::vector<std::exception_ptr>& failures) {
  Failures all;
  for (const auto& failure : failures) {
    if (failure) {
      all.add(failure);
    }
  }
  all.throwAny();
}

}  // namespace vfpass
