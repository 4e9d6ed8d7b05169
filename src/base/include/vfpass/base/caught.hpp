#pragma once

#include <exception>

#include "vfpass/error.hpp"

namespace vfpass {

/// Runs `call` and returns the Error that it throws, or null. Other exceptions pass through.
template <typename Call>
std::exception_ptr caught(Call call) {
  try {
    call();
    return nullptr;
  } catch (const Error&) {
    return std::current_exception();
  }
}

}  // namespace vfpass
