#include "zklock/report/print.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "zklock/command_line/options.hpp"
#include "zklock/system/descriptors.hpp"

namespace zkrecipes::zklock {

void print(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t size = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (size < 0 && errno == EAGAIN) {
            pollfd ready{STDOUT_FILENO, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (size < 0 && errno != EINTR) {
            cannot_print(errno);
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(size, 0));
    }
    finish_printing();
}

void cannot_print(int error) {
    throw Failure(kIoError, std::string("cannot write to standard output: ") + std::strerror(error));
}

void finish_printing() {
    if (const int error = late_write_error(STDOUT_FILENO)) cannot_print(error);
}

}  // namespace zkrecipes::zklock
