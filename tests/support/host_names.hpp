#pragma once

// Host names that only this program knows. One file of a program includes this: it replaces getaddrinfo, for the C
// client, too.

#include <dlfcn.h>
#include <netdb.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zkrecipes::test {

class HostNames {
public:
    /// An empty list: the name has no address.
    void set(const std::string& name, std::vector<std::string> addresses) {
        const std::lock_guard lock(mutex_);
        names_[name] = std::move(addresses);
    }
    bool find(const std::string& name, std::vector<std::string>& addresses) {
        const std::lock_guard lock(mutex_);
        const auto found = names_.find(name);
        if (found == names_.end()) return false;
        addresses = found->second;
        return true;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::vector<std::string>> names_;
};

inline HostNames& host_names() {
    static auto* const names = new HostNames;  // never destroyed: a thread may still look a name up
    return *names;
}

}  // namespace zkrecipes::test

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    std::vector<std::string> addresses;
    if (name == nullptr || !zkrecipes::test::host_names().find(name, addresses)) {
        return real(name, service, hints, result);
    }
    addrinfo* list = nullptr;
    addrinfo** end = &list;
    for (const std::string& address : addresses) {
        if (real(address.c_str(), service, hints, end) != 0) continue;  // AI_ADDRCONFIG leaves it out
        while (*end != nullptr) end = &(*end)->ai_next;
    }
    *result = list;
    if (list != nullptr) return 0;
    errno = EAGAIN;  // what the C library leaves behind when a name server does not answer
    return EAI_NONAME;
}
