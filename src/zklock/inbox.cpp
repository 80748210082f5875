#include "zklock/inbox.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace zkrecipes::zklock {

Inbox::Inbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Inbox::Mail Inbox::take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd_.get(), &count, sizeof count);
    const std::lock_guard lock(mutex_);
    Mail mail = std::move(mail_);
    mail_ = Mail{};
    mail_.lost = mail.lost;
    return mail;
}

void Inbox::post_state(SessionState state) {
    {
        const std::lock_guard lock(mutex_);
        mail_.states.push_back({state, BootClock::now()});
    }
    wake();
}

void Inbox::post_acquired(AcquireResult result) {
    {
        const std::lock_guard lock(mutex_);
        mail_.acquired = std::move(result);
    }
    wake();
}

void Inbox::post_queue(QueueView view) {
    {
        const std::lock_guard lock(mutex_);
        mail_.queue = std::move(view);
    }
    wake();
}

void Inbox::post_confirmed(Instant asked) {
    {
        const std::lock_guard lock(mutex_);
        mail_.confirmed = asked;
    }
    wake();
}

void Inbox::post_lost() {
    {
        const std::lock_guard lock(mutex_);
        mail_.lost = true;
    }
    wake();
}

void Inbox::post_failure(std::exception_ptr failure) {
    {
        const std::lock_guard lock(mutex_);
        mail_.failure = std::move(failure);
    }
    wake();
}

void Inbox::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = ::write(fd_.get(), &one, sizeof one);
}

}  // namespace zkrecipes::zklock
