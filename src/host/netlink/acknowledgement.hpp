#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass::host {

/// The kernel's acknowledgement of a request.
struct Acknowledgement {
  int error = 0;        ///< errno; 0: success
  std::string message;  ///< the driver's message (extended acknowledgement), printable
};

/// Parses one NLMSG_ERROR message; nullopt for any other message.
std::optional<Acknowledgement> parseAcknowledgement(std::string_view bytes);

/// The system's reason, followed by the driver's message if there is one.
std::string reasonOf(const Acknowledgement& refusal);

}  // namespace vfpass::host
