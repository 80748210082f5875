#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace zkrecipes::zklock::test {

/// While it lives the modes of files and directories count for this thread, also when root runs the test.
class ModesCount {
public:
    ModesCount() {
        if (::syscall(SYS_capget, &header_, before_) != 0) return;
        __user_cap_data_struct without[2] = {before_[0], before_[1]};
        without[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
        done_ = ::syscall(SYS_capset, &header_, without) == 0;
    }
    ~ModesCount() {
        if (done_) ::syscall(SYS_capset, &header_, before_);
    }
    ModesCount(const ModesCount&) = delete;
    ModesCount& operator=(const ModesCount&) = delete;

    explicit operator bool() const { return done_; }

private:
    __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct before_[2] = {};
    bool done_ = false;
};

}  // namespace zkrecipes::zklock::test
