#pragma once

namespace vfpass {

/// Call first in main. Whoever starts us may have closed the standard streams (`>&-`, a daemon):
/// the next file or socket that is opened would get the free descriptor, and our messages would go
/// into it. Occupies each with one that can be neither read nor written in its direction, so that
/// its use still fails with EBADF.
void occupyClosedStreams();

/// Whether control sequences have an effect there: a terminal, and `TERM` names one that knows any.
bool isScreen(int stream);

}  // namespace vfpass
